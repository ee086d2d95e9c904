// The page: reads the documents and shows each by its kind.

import { html, renderInto } from "./dom.js";
import { words } from "./format.js";
import { ClusterPage } from "./cluster.js";
import { OtherPage } from "./other.js";
import { ThemeButton } from "./theme.js";
import { WhyPage } from "./why.js";

const PAGES = {
  ClusterView: ClusterPage,
  WhyReport: WhyPage,
};

function Page({ title, documents }) {
  return html`<header><h1>${title}</h1><${ThemeButton} /></header>
    <main>${documents.map((report) => {
      const Shown = PAGES[report.kind] ?? OtherPage;
      return html`<article class=${report.kind} aria-label=${words(report.kind)}><${Shown} report=${report} /></article>`;
    })}</main>
    <footer>kubesched · the data in this page is what <code>-o json</code> prints</footer>`;
}

/** Show documents; a second call changes what is shown. */
export function show(title, documents) {
  renderInto(html`<${Page} title=${title} documents=${documents} />`, document.getElementById("page"));
}

show(document.title, JSON.parse(document.getElementById("documents").textContent));
