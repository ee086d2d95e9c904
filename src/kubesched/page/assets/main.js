// The page: reads the documents and shows each by its kind.

import { html, renderInto } from "./dom.js";
import { words } from "./format.js";
import { ClusterPage, clusterSentence } from "./cluster.js";
import {
  CompactPage,
  DrainPage,
  FitPage,
  PlanPage,
  TopPage,
  UpgradePage,
  compactSentence,
  drainSentence,
  fitSentence,
  planSentence,
  topSentence,
  upgradeSentence,
} from "./changes.js";
import { ClustersPage, ComparisonPage, clustersSentence, comparisonSentence } from "./comparison.js";
import { ExplanationPage, explanationSentence } from "./explanation.js";
import { OtherPage } from "./other.js";
import { ShadowPage, shadowSentence } from "./shadow.js";
import { SimulationPage, simulationSentence } from "./simulation.js";
import { ThemeButton } from "./theme.js";
import { WhyPage } from "./why.js";

// Per kind of document: what draws it, and the answer in one sentence.
const VIEWS = {
  ClusterView: [ClusterPage, clusterSentence],
  ClusterComparison: [ClustersPage, clustersSentence],
  CompactReport: [CompactPage, compactSentence],
  DrainReport: [DrainPage, drainSentence],
  FitReport: [FitPage, fitSentence],
  PodExplanation: [ExplanationPage, explanationSentence],
  ShadowReport: [ShadowPage, shadowSentence],
  SimulationReport: [SimulationPage, simulationSentence],
  TimelineComparison: [ComparisonPage, comparisonSentence],
  TopReport: [TopPage, topSentence],
  UpgradeReport: [UpgradePage, upgradeSentence],
  WhatIfReport: [PlanPage, planSentence],
  WhyReport: [WhyPage, (report) => report.sentence],
};
// Documents that an earlier one shows as a part of its own view.
const PARTS = { PodExplanation: "ClusterView", TimelineComparison: "TimelineReport" };
const OTHER = [OtherPage, (report) => report.sentence ?? words(report.kind)];

function Page({ title, documents }) {
  return html`<header><p>${title}</p><${ThemeButton} /></header>
    <main>${alone(documents).map((report, at) => {
      const [Shown, sentence] = VIEWS[report.kind] ?? OTHER;
      const lead = sentence(report);
      return html`<article class=${report.kind} aria-label=${words(report.kind)}>
        ${at ? html`<h2 class="lead">${lead}</h2>` : html`<h1 class="lead">${lead}</h1>`}
        <${Shown} report=${report} documents=${documents} />
      </article>`;
    })}</main>
    <footer>kubesched · the data in this page is what <code>-o json</code> prints</footer>`;
}

/** The documents without those that are a part of another one's view. */
function alone(documents) {
  const parts = documents.map((report) => PARTS[report.kind]);
  return documents.filter((report) => !parts.includes(report.kind));
}

/** Show documents; a second call changes what is shown. */
export function show(title, documents) {
  renderInto(html`<${Page} title=${title} documents=${documents} />`, document.getElementById("page"));
}

show(document.title, JSON.parse(document.getElementById("documents").textContent));
