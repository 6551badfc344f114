// What makes the page quick. Every form and link also works without it, but for dragging.
"use strict";

const main = () => document.getElementById("main");

// The token has done its work: it stays neither in the address nor in what is copied from there.
if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", location.pathname);

function take(page, address) {
  const next = new DOMParser().parseFromString(page, "text/html");
  if (!next.getElementById("main")) { location.href = address; return; }
  const focused = document.activeElement && document.activeElement.id;
  const typed = document.getElementById("text");
  const edited = typed && typed.value !== typed.defaultValue ? typed.value : null;
  const same = typed && next.getElementById("text") && typed.defaultValue === next.getElementById("text").defaultValue;
  document.title = next.title;
  document.body.dataset.stamp = next.body.dataset.stamp;
  document.body.dataset.busy = next.body.dataset.busy;
  document.body.replaceChildren(...next.body.childNodes);
  // What somebody is writing into the file stays, as long as the file is the same.
  if (edited !== null && same) document.getElementById("text").value = edited;
  const again = focused && document.getElementById(focused);
  if (again) again.focus({ preventScroll: true });
  ready();
}

async function go(address, options) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (_) {
    say("The studio does not answer. It ends with its terminal; start it again there.");
    return;
  }
  const page = await answer.text();
  if (!answer.headers.get("content-type").startsWith("text/html")) { say(page); return; }
  if (options && options.method === "POST" || answer.redirected) history.replaceState(null, "", answer.url);
  take(page, answer.url);
}

function say(sentence) {
  const said = document.createElement("p");
  said.className = "said bad";
  said.textContent = sentence;
  document.getElementById("said").replaceChildren(said);
  said.scrollIntoView({ block: "nearest" });
}

function send(form, button) {
  // A key may both change a field and send its form.
  if (form.dataset.sent) return;
  form.dataset.sent = "yes";
  const body = new URLSearchParams(new FormData(form));
  if (button && button.name) body.append(button.name, button.value);
  if (form.querySelector("#text")) body.set("text", form.querySelector("#text").value);
  main().setAttribute("aria-busy", "true");
  const text = document.getElementById("text");
  // A saved text is no text that is being edited.
  if (form.querySelector("#text")) text.defaultValue = text.value;
  return go(form.getAttribute("action"), { method: "POST", body });
}

document.addEventListener("submit", (event) => {
  // A field may be called method, too.
  if (event.target.getAttribute("method") !== "post") return;
  event.preventDefault();
  send(event.target, event.submitter);
});

document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-auto]");
  if (form && form.reportValidity()) send(form, null);
});

document.addEventListener("input", (event) => {
  const wanted = event.target.dataset.filter;
  if (!wanted) return;
  const said = event.target.value.trim().toLowerCase();
  for (const row of document.querySelectorAll(wanted)) row.hidden = !row.dataset.name.includes(said);
});

// A point of a picture is the button of its row.
document.addEventListener("click", (event) => {
  const link = event.target.closest("svg a");
  if (!link) return;
  event.preventDefault();
  const button = document.getElementById(link.getAttribute("href").slice(1));
  if (button) button.click();
});

// Dragging: what is dropped is ticked and moved, as by hand.
let dragged = null;
document.addEventListener("dragstart", (event) => {
  dragged = event.target.closest && event.target.closest(".chip");
  if (dragged) event.dataTransfer.setData("text/plain", "");
});
document.addEventListener("dragover", (event) => {
  const group = event.target.closest && event.target.closest(".group");
  for (const one of document.querySelectorAll(".group.over")) if (one !== group) one.classList.remove("over");
  if (dragged && group) { event.preventDefault(); group.classList.add("over"); }
});
document.addEventListener("drop", (event) => {
  const group = event.target.closest && event.target.closest(".group");
  if (!dragged || !group) return;
  event.preventDefault();
  if (!group.contains(dragged)) {
    dragged.querySelector("input").checked = true;
    document.getElementById("to").value = group.dataset.group;
    send(document.getElementById("move"), null);
  }
  dragged = null;
});
document.addEventListener("dragend", () => {
  dragged = null;
  for (const one of document.querySelectorAll(".group.over")) one.classList.remove("over");
});

async function load(part) {
  const address = part.dataset.part;
  try {
    const answer = await fetch(address);
    const text = await answer.text();
    if (!part.isConnected) return;
    if (answer.headers.get("content-type").startsWith("text/html")) part.innerHTML = text;
    else part.textContent = text;
  } catch (_) {
    if (part.isConnected) part.textContent = "The studio does not answer.";
  }
  part.removeAttribute("aria-busy");
}

function ready() {
  for (const part of document.querySelectorAll("[data-part]")) load(part);
}

function line(step) {
  const item = document.createElement("li");
  const bar = document.createElement("progress");
  bar.max = step.total;
  bar.value = step.done;
  const words = document.createElement("span"), count = document.createElement("span");
  words.textContent = step.words;
  count.textContent = `${step.done} of ${step.total}`;
  item.append(words, bar, count);
  return item;
}

// Watches the file, which may be edited elsewhere, and what goes on.
async function watch() {
  let state;
  try {
    state = await (await fetch("/state")).json();
  } catch (_) {
    return later(3000);
  }
  const body = document.body, busy = state.busy ? "yes" : "no";
  const text = document.getElementById("text");
  const editing = text && text.value !== text.defaultValue;
  if (busy !== body.dataset.busy) await go(location.href);
  else if (state.stamp !== body.dataset.stamp && !editing) await go(location.href);
  else if (state.stamp !== body.dataset.stamp) say("The job file was changed elsewhere. Copy what you wrote, and load the page again.");
  const list = document.querySelector("#work .steps"), notes = document.querySelector("#work .notes");
  if (state.busy && list && state.steps.length) list.replaceChildren(...state.steps.map(line));
  if (state.busy && notes) notes.replaceChildren(...state.notes.map((one) => { const item = document.createElement("li"); item.textContent = one; return item; }));
  later(state.busy ? 500 : 2000);
}

function later(milliseconds) { setTimeout(() => (document.hidden ? later(milliseconds) : watch()), milliseconds); }

ready();
later(500);
