// What can be done from the page: pause, stop, resume, restart, try again. Each is asked for twice where it stops
// something, and says what became of it.

import { draw, h } from "./dom.js";

const QUESTIONS = {
  pause: ["Pause", "Its workers end in order and its positions stay, until it is resumed. The log of ScyllaDB does not wait: it keeps changes for its TTL."],
  stop: ["Stop", "As a pause; its positions can be moved meanwhile. The log of ScyllaDB does not wait: it keeps changes for its TTL."],
  restart: ["Restart", "Every worker of it ends in order and another one takes its place."],
};
const NO_RIGHT = "only this machine may change anything, unless rest.bearer.token or clients' certificates are configured";

export class Acts {
  constructor(service) {
    this.service = service;
  }

  /** The buttons of a connector. */
  of(connector) {
    const path = `connectors/${encodeURIComponent(connector.name)}`;
    const failed = connector.state === "FAILED" || connector.tables.some((table) => table.state === "FAILED");
    const act = (word, method, to, question, shown = true) => shown && this.button(word, `${word} ${connector.name}`, () => this.ask(connector.name, question, word, method, `${path}/${to}`));
    return h("span", { class: "acts" },
      act("Resume", "PUT", "resume", null, connector.held),
      act("Retry", "POST", "restart?includeTasks=true&onlyFailed=true", null, !connector.held && failed),
      act("Pause", "PUT", "pause", "pause", connector.target === "RUNNING"),
      act("Stop", "PUT", "stop", "stop", connector.target !== "STOPPED"),
      act("Restart", "POST", "restart?includeTasks=true", "restart", !connector.held));
  }

  /** Connect numbers the workers of all processes; which one is meant is asked for when it is told. */
  worker(connector, task, index) {
    const restart = async () => {
      const access = await this.service.ask("ui/access").catch(() => null);
      const number = access?.body?.tasks?.[connector.name]?.[task];
      if (number === undefined) return say(`Worker ${index} cannot be restarted now.`, false);
      await this.ask(`worker ${index}`, null, "Restart", "POST", `connectors/${encodeURIComponent(connector.name)}/tasks/${number}/restart`);
    };
    return this.button("Restart", `Restart worker ${index}`, restart);
  }

  button(word, label, onclick) {
    const may = this.service.mayWrite && !this.service.silence;
    // Not `disabled`: who comes with the keyboard hears why.
    return h("button", { key: word, "aria-label": label, "aria-disabled": String(!may), title: this.service.mayWrite ? null : NO_RIGHT, onclick: () => (may ? onclick() : say(this.service.silence ? "The service does not answer." : `Not allowed: ${NO_RIGHT}.`, false)) }, word);
  }

  async ask(what, question, word, method, path) {
    if (question && !(await confirmed(what, ...QUESTIONS[question]))) return;
    say(`${word} ${what}…`, true);
    const { done, words } = await this.service.tell(method, path);
    say(done ? `${word} ${what}: done.` : `${word} ${what} was refused: ${words}`, done);
  }
}

let hushed;

/** For eyes and screen readers, for some seconds; what went wrong stays longer. */
export function say(words, good) {
  const place = document.getElementById("said");
  clearTimeout(hushed);
  place.className = good ? "good" : "wrong";
  draw(place, [words]);
  hushed = setTimeout(() => draw(place, []), good ? 5000 : 15000);
}

function confirmed(what, word, consequence) {
  const dialog = document.getElementById("question");
  return new Promise((answered) => {
    draw(dialog, [
      h("h2", { id: "question-title" }, `${word} ${what}?`),
      h("p", {}, consequence),
      h("div", { class: "answers" },
        h("button", { onclick: () => dialog.close() }, "Cancel"),
        h("button", { class: "strong", onclick: () => dialog.close("yes") }, word)),
    ]);
    dialog.returnValue = "";
    dialog.onclose = () => answered(dialog.returnValue === "yes");
    dialog.showModal();
  });
}
