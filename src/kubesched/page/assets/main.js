// The page: reads the documents and shows each by its kind.

import { html, renderInto } from "./dom.js";
import { words } from "./format.js";
import { ClusterPage, clusterSentence } from "./cluster.js";
import { OtherPage } from "./other.js";
import { ThemeButton } from "./theme.js";
import { WhyPage } from "./why.js";

// Per kind of document: what draws it, and the answer in one sentence.
const VIEWS = {
  ClusterView: [ClusterPage, clusterSentence],
  WhyReport: [WhyPage, (report) => report.sentence],
};
const OTHER = [OtherPage, (report) => report.sentence ?? words(report.kind)];

function Page({ title, documents }) {
  return html`<header><p>${title}</p><${ThemeButton} /></header>
    <main>${documents.map((report, at) => {
      const [Shown, sentence] = VIEWS[report.kind] ?? OTHER;
      const lead = sentence(report);
      return html`<article class=${report.kind} aria-label=${words(report.kind)}>
        ${at ? html`<h2 class="lead">${lead}</h2>` : html`<h1 class="lead">${lead}</h1>`}
        <${Shown} report=${report} />
      </article>`;
    })}</main>
    <footer>kubesched · the data in this page is what <code>-o json</code> prints</footer>`;
}

/** Show documents; a second call changes what is shown. */
export function show(title, documents) {
  renderInto(html`<${Page} title=${title} documents=${documents} />`, document.getElementById("page"));
}

show(document.title, JSON.parse(document.getElementById("documents").textContent));
