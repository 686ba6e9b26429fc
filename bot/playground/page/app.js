// The playground's page: shows what the chosen person sees, and does what they type, press and drop.

import { element, mrkdwn, render } from "./blocks.js";

const at = (id) => document.getElementById(id);
const view = { viewer: null, channel: null, thread: null, state: null };
let shownVersion = -1;
let loading = null;

// the control API

async function ask(what, query = {}) {
  const response = await fetch(`control/${what}?${new URLSearchParams(query)}`);
  if (!response.ok) throw new Error((await response.json()).message);
  return response.json();
}

async function order(what, fields, files = []) {
  let body = JSON.stringify(fields);
  const headers = {};
  if (files.length) {
    body = new FormData();
    body.append("fields", JSON.stringify(fields));
    for (const file of files) body.append("file", file, file.name);
  } else headers["Content-Type"] = "application/json";
  const response = await fetch(`control/${what}`, { method: "POST", body, headers });
  const answer = await response.json();
  if (!response.ok) {
    toast(answer.message);
    throw new Error(answer.message);
  }
  return answer;
}

let toastEnd = 0;
function toast(text) {
  at("toast").textContent = text;
  at("toast").hidden = false;
  clearTimeout(toastEnd);
  toastEnd = setTimeout(() => (at("toast").hidden = true), 6000);
}

// names

const users = () => view.state.users;
const person = (id) => users().find((user) => user.id === id);
const channelOf = (id) => view.state.channels.find((channel) => channel.id === id);
const directory = {
  user: (id) => person(id)?.name ?? id,
  channel: (id) => channelOf(id)?.name ?? id,
};
const other = (channel) => channel.members.find((id) => id !== view.viewer) ?? view.viewer;
const title = (channel) => (channel.kind === "im" ? directory.user(other(channel)) : channel.name);

// loading: one at a time, and again if something changed meanwhile

function refresh() {
  loading ??= load().catch((error) => console.warn(error.message)).finally(() => (loading = null));
  return loading;
}

async function load() {
  let version;
  do {
    view.state = await ask("state", view.viewer ? { viewer: view.viewer } : {});
    version = view.state.version;
    chooseViewer();
    showSidebar();
    await showConversation();
    shownVersion = Math.max(version, 0);
  } while (latestVersion > shownVersion);
}

let latestVersion = 0;
function watch() {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/control/live`);
  socket.onmessage = (message) => {
    latestVersion = JSON.parse(message.data).version;
    refresh();
  };
  socket.onclose = () => {
    at("connection").textContent = "The playground has ended";
    at("connection").className = "off";
    setTimeout(watch, 1500);
  };
}

// the sidebar

function chooseViewer() {
  const people = users().filter((user) => !user.is_bot && !user.deleted);
  const wanted = view.viewer ?? new URLSearchParams(location.search).get("as");
  const chosen = people.find((user) => user.id === wanted || user.name === wanted) ?? people[0];
  view.viewer = chosen?.id ?? null;
  const options = people.map((user) => element("option", { value: user.id, selected: user.id === view.viewer }, user.name));
  replaceIfChanged(at("viewer"), options, people.map((user) => user.id + user.name + (user.id === view.viewer)).join());
}

function showSidebar() {
  const { team, connections, channels } = view.state;
  at("team").textContent = team.name;
  document.title = `${team.app} playground`;
  at("connection").textContent = connections ? `${team.app} is connected` : `${team.app} is not connected`;
  at("connection").className = connections ? "on" : "off";
  const rooms = channels.filter((channel) => channel.kind !== "im").sort((a, b) => a.name.localeCompare(b.name));
  const mine = channels.filter((channel) => channel.kind === "im" && channel.members.includes(view.viewer));
  view.channel = channelOf(view.channel)?.id ?? rooms.find((c) => [view.viewer, view.state.bot].every((id) => c.members.includes(id)))?.id ?? rooms[0]?.id ?? null;
  const signature = JSON.stringify([rooms, mine, view.channel, view.viewer]);
  replaceIfChanged(at("channels"), rooms.map((channel) => entry(channel, channel.kind === "private" ? "🔒 " : "# ")), signature);
  const directs = mine.filter((channel) => other(channel) !== view.state.bot).map((channel) => entry(channel, "● "));
  const bot = mine.find((channel) => other(channel) === view.state.bot);
  const toBot = bot ? entry(bot, "● ") : element("li", {}, element("button", {
    type: "button", "data-channel": "@bot", onclick: () => go("@" + directory.user(view.state.bot)),
  }, "● " + directory.user(view.state.bot)));
  replaceIfChanged(at("directs"), view.viewer ? [toBot, ...directs] : [], signature);
}

const entry = (channel, mark) => element("li", {}, element("button", {
  type: "button", "data-channel": title(channel), "aria-current": channel.id === view.channel ? "page" : undefined,
  class: channel.members.includes(view.viewer) ? "" : "outside", onclick: () => go(channel.id),
}, mark + title(channel)));

async function go(channel) {
  if (channel.startsWith("@")) {
    // asking for a DM opens it
    channel = (await ask("messages", { channel, viewer: view.viewer })).channel;
  }
  Object.assign(view, { channel, thread: null });
  refresh();
}

// the conversation

async function showConversation() {
  const channel = channelOf(view.channel);
  const inside = channel?.members.includes(view.viewer);
  at("channel-name").textContent = channel ? (channel.kind === "im" ? "" : "# ") + title(channel) : "No channel yet";
  at("channel-facts").textContent = channel && channel.kind !== "im"
    ? `${channel.members.map(directory.user).join(", ")}${channel.kind === "private" ? " · private" : ""}${channel.ext_shared ? " · shared with another workspace" : ""}`
    : "";
  at("join").hidden = !channel || inside || channel.kind !== "public";
  at("composer-form").hidden = !inside;
  const placeholder = channel ? `Message ${title(channel)}… “@${directory.user(view.state.bot)} …” asks; “/” runs a command` : "";
  if (at("composer").placeholder !== placeholder) at("composer").placeholder = placeholder;
  if (!channel) return;
  const { messages, statuses } = await ask("messages", { channel: channel.id, viewer: view.viewer ?? "" });
  const status = Object.fromEntries(statuses.map(({ thread_ts, text }) => [thread_ts, text]));
  fill(at("messages"), messages.filter((message) => !message.thread_ts), status);
  at("thread").hidden = !view.thread;
  if (view.thread) {
    fill(at("thread-messages"), messages.filter((m) => m.ts === view.thread || m.thread_ts === view.thread), status, view.thread);
  }
}

// Keeps what did not change, so that reading, scrolling and selecting go on undisturbed.
function fill(list, messages, status, thread) {
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 80;
  const old = new Map([...list.children].map((node) => [node.dataset.ts, node]));
  const nodes = messages.map((message) => {
    const signature = JSON.stringify([message, status[message.ts], directory.user(message.user), thread]);
    const there = old.get(message.ts);
    return there?.signature === signature ? there : Object.assign(show(message, status[message.ts], thread), { signature });
  });
  if (nodes.length !== list.children.length || nodes.some((node, n) => node !== list.children[n])) list.replaceChildren(...nodes);
  if (atEnd) list.scrollTop = list.scrollHeight;
}

function show(message, status, thread) {
  const speaker = person(message.user);
  const time = new Date(Number(message.ts) * 1000);
  const isProgress = message.blocks.length && message.blocks.every((block) => block.type === "context");
  const press = (action_id) => order("press", { user: view.viewer, channel: message.channel, ts: message.ts, action_id });
  const content = message.blocks.length
    ? message.blocks.map((block) => render(block, { directory, press }))
    : [mrkdwn(message.text, directory)];
  return element("li", {
    "data-ts": message.ts, "data-user": speaker?.name ?? message.user,
    class: ["message", message.bot_id && "bot", message.ephemeral_to && "whisper", message.subtype, isProgress && "progress"].filter(Boolean).join(" "),
  },
    element("p", { class: "who" },
      element("strong", {}, speaker?.name ?? "slackbot"),
      message.bot_id && element("span", { class: "badge" }, "APP"),
      element("time", { datetime: time.toISOString(), title: time.toLocaleString() }, time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })),
      message.edited_ts && !message.bot_id && element("span", { class: "edited" }, "(edited)"),
      message.ephemeral_to && element("span", { class: "edited" }, "only visible to you")),
    ...content,
    ...message.files.map(attachment),
    message.reactions.length > 0 && element("p", { class: "reactions" }, ...message.reactions.map(([name, who]) => element("span", {}, `:${name}: ${who.length}`))),
    status && element("p", { class: "status" }, `${view.state.team.app} ${status}`),
    !thread && !message.ephemeral_to && element("button", {
      type: "button", class: "open-thread", "data-open-thread": message.ts,
      onclick: () => { view.thread = message.ts; refresh().then(() => at("thread-composer").focus()); },
    }, message.reply_count ? `${message.reply_count} ${message.reply_count === 1 ? "reply" : "replies"}` : "Reply"));
}

function attachment(file) {
  if (file.deleted) return element("p", { class: "file gone" }, "This file was deleted.");
  const size = file.size < 1024 ? `${file.size} B` : file.size < 1048576 ? `${Math.round(file.size / 1024)} kB` : `${(file.size / 1048576).toFixed(1)} MB`;
  return element("p", { class: "file" }, element("a", { href: `control/files/${file.id}`, download: file.name }, `📄 ${file.name}`), ` ${size}`);
}

function replaceIfChanged(node, children, signature) {
  if (node.signature === signature) return;
  node.signature = signature;
  node.replaceChildren(...children);
}

// typing, pressing, dropping

async function send(box, files = []) {
  const text = box.value.trim();
  const inThread = box.id === "thread-composer";
  if (!text && !files.length) return;
  const where = { user: view.viewer, channel: view.channel };
  box.value = "";
  try {
    if (/^\/[a-z]/.test(text) && !files.length) {
      if (inThread) throw toast("Slack runs no commands in threads: type it in the channel.");
      const [name] = text.split(/\s/, 1);
      await order("command", { ...where, name, text: text.slice(name.length).trim() });
    } else await order("say", { ...where, text, thread_ts: inThread ? view.thread : null }, files);
  } catch {
    box.value = box.value || text; // the toast says why
  }
}

function composer(box, form, attach, input, area) {
  form.addEventListener("submit", (event) => { event.preventDefault(); send(box); });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(box); }
  });
  attach.addEventListener("click", () => input.click());
  input.addEventListener("change", () => { send(box, [...input.files]); input.value = ""; });
  area.addEventListener("dragover", (event) => { event.preventDefault(); area.classList.add("dragging"); });
  area.addEventListener("dragleave", (event) => { if (!area.contains(event.relatedTarget)) area.classList.remove("dragging"); });
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    area.classList.remove("dragging");
    send(box, [...event.dataTransfer.files]);
  });
}

composer(at("composer"), at("composer-form"), at("attach"), at("file"), at("drop"));
composer(at("thread-composer"), at("thread-form"), at("thread-attach"), at("thread-file"), at("thread"));
at("close-thread").addEventListener("click", () => { view.thread = null; refresh(); });
at("join").addEventListener("click", () => order("join", { user: view.viewer, channel: view.channel }));
at("viewer").addEventListener("change", (event) => { view.viewer = event.target.value; view.thread = null; refresh(); });
at("new-channel").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = event.target.elements.name.value;
  event.target.reset();
  go((await order("create_channel", { name, members: view.viewer ? [view.viewer] : [], with_bot: true })).id);
});
at("new-person").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = event.target.elements.name.value;
  event.target.reset();
  view.viewer = (await order("create_user", { name })).id;
  refresh();
});

refresh();
watch();
