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
import { AskAboutPod, follow } from "./live.js";
import { OtherPage } from "./other.js";
import { PlaybackPage, playbackSentence } from "./playback.js";
import { ReplayPage, ShadowPage, replaySentence, shadowSentence } from "./shadow.js";
import { SimulationPage, simulationSentence } from "./simulation.js";
import { ThemeButton } from "./theme.js";
import { TimelinePage, timelineSentence } from "./timeline.js";
import { WhyPage } from "./why.js";

// Per kind of document: what draws it, and the answer in one sentence.
const VIEWS = {
  ClusterView: [ClusterPage, clusterSentence],
  ClusterComparison: [ClustersPage, clustersSentence],
  CompactReport: [CompactPage, compactSentence],
  DrainReport: [DrainPage, drainSentence],
  FitReport: [FitPage, fitSentence],
  Playback: [PlaybackPage, playbackSentence],
  PodExplanation: [ExplanationPage, explanationSentence],
  ReplayReport: [ReplayPage, replaySentence],
  ShadowReport: [ShadowPage, shadowSentence],
  SimulationReport: [SimulationPage, simulationSentence],
  TimelineComparison: [ComparisonPage, comparisonSentence],
  TimelineReport: [TimelinePage, timelineSentence],
  TopReport: [TopPage, topSentence],
  UpgradeReport: [UpgradePage, upgradeSentence],
  WhatIfReport: [PlanPage, planSentence],
  WhyReport: [WhyPage, (report) => report.sentence],
};
// Documents that an earlier one shows as a part of its own view.
const PARTS = { PodExplanation: "ClusterView", TimelineComparison: "TimelineReport" };
const OTHER = [OtherPage, (report) => report.sentence ?? words(report.kind)];

/** A document with its sentence as heading. */
function Article({ report, documents = [report], isFirst = false }) {
  const [Shown, sentence] = VIEWS[report.kind] ?? OTHER;
  const lead = sentence(report, documents);
  return html`<article class=${report.kind} aria-label=${words(report.kind)}>
    ${isFirst ? html`<h1 class="lead">${lead}</h1>` : html`<h2 class="lead">${lead}</h2>`}
    <${Shown} report=${report} documents=${documents} />
  </article>`;
}

function Page({ title, documents, state }) {
  const view = state && documents.find((report) => report.kind === "ClusterView");
  return html`<header><p>${title}</p><${ThemeButton} /></header>
    ${state}
    <main>
      ${alone(documents).map((report, at) => html`<${Article} report=${report} documents=${documents} isFirst=${!at} />`)}
      ${view && html`<${AskAboutPod} known=${view.pending.flatMap((group) => group.pods)} Article=${Article} />`}
    </main>
    <footer>kubesched · the data in this page is what <code>-o json</code> prints</footer>`;
}

/** The documents without those that are a part of another one's view. */
function alone(documents) {
  const parts = documents.map((report) => PARTS[report.kind]);
  return documents.filter((report) => !parts.includes(report.kind));
}

/** Show documents; a second call changes what is shown. `state` is that of a live page. */
function show(title, documents, state = null) {
  document.title = title;
  renderInto(html`<${Page} title=${title} documents=${documents} state=${state} />`, document.getElementById("page"));
}

if ("live" in document.body.dataset) follow(show);
else show(document.title, JSON.parse(document.getElementById("documents").textContent));
