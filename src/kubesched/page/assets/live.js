// A live page: it asks its server for the documents again and again, and for answers about pods.

import { html, useState } from "./dom.js";

const PAUSE_MS = 2000;
const TOKEN = "kubesched-token";

/** The token in the address, which leaves the address bar but survives a reload of the tab. */
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(TOKEN, given);
    history.replaceState(null, "", location.pathname);
  }
}

async function ask(path, headers = {}) {
  const token = sessionStorage.getItem(TOKEN) ?? "";
  let answer;
  try {
    answer = await fetch(path, { headers: { ...headers, Authorization: `Bearer ${token}` } });
  } catch {
    throw new Error("the server does not answer; perhaps kubesched ui has ended");
  }
  if (answer.ok || answer.status === 304) return answer;
  throw new Error((await answer.json()).message);
}

/** Show the documents, and again whenever they change. */
export async function follow(show) {
  takeToken();
  let [shown, tag, since] = [{ title: "kubesched", documents: [] }, "", ""];
  for (;;) {
    let problem = "";
    try {
      const answer = await ask("/documents", tag ? { "If-None-Match": tag } : {});
      if (answer.status !== 304) {
        shown = await answer.json();
        tag = answer.headers.get("ETag");
        since = new Date().toLocaleTimeString();
      }
    } catch (error) {
      problem = error.message;
    }
    show(shown.title, shown.documents, html`<${State} problem=${problem} since=${since} />`);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

function State({ problem, since }) {
  const text = problem ? `${problem[0].toUpperCase()}${problem.slice(1)}` : `Unchanged since ${since}`;
  return html`<p class=${problem ? "note live" : "live dim"} role="status">${text}${problem && since ? `. Below is what was there at ${since}.` : ""}</p>`;
}

/** Ask why a pod is pending, or how its nodes were filtered and scored. */
export function AskAboutPod({ known, Article }) {
  const [pod, setPod] = useState("");
  const [answer, setAnswer] = useState(null);
  const [problem, setProblem] = useState("");
  const [isAsking, setAsking] = useState(false);
  const send = async (event) => {
    event.preventDefault();
    setAsking(true);
    try {
      const question = event.submitter?.value ?? "why";
      setAnswer(await (await ask(`/${question}?pod=${encodeURIComponent(pod)}`)).json());
      setProblem("");
    } catch (error) {
      setProblem(error.message);
    }
    setAsking(false);
  };
  return html`<section aria-labelledby="ask-heading">
    <h2 id="ask-heading">Ask about a pod</h2>
    <form class="controls" onSubmit=${send}>
      <label>Pod <input required list="known-pods" placeholder="namespace/name" value=${pod} onInput=${(event) => setPod(event.target.value)} /></label>
      <datalist id="known-pods">${known.map((name) => html`<option value=${name}></option>`)}</datalist>
      <button value="why">Why is it pending?</button>
      <button value="explain">Explain every node</button>
    </form>
    <div aria-live="polite">
      ${isAsking && html`<p class="dim">Asking…</p>`}
      ${problem && html`<p class="note">${problem}</p>`}
      ${answer && !problem && html`<${Article} report=${answer} />`}
    </div>
  </section>`;
}
