// Slack's text and blocks -> DOM nodes. Builds elements, never HTML from text. Knows names through `directory` only.

const EMOJI = {
  eyes: "👀", white_check_mark: "✅", heavy_check_mark: "✔️", warning: "⚠️", x: "❌", hourglass: "⏳",
  hourglass_flowing_sand: "⏳", mag: "🔍", books: "📚", page_facing_up: "📄", thinking_face: "🤔", tada: "🎉",
  wave: "👋", thumbsup: "👍", "+1": "👍", thumbsdown: "👎", "-1": "👎", information_source: "ℹ️",
};

export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child || child === 0));
  return node;
}

const unescape = (text) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
const safe = (address) => (/^(https?|mailto):/i.test(address) ? address : undefined);

// mrkdwn

const INLINE = /(`[^`\n]+`)|<([^<>\n]+)>|(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])|(?<![\w_])_(?=\S)([^_\n]+?)(?<=\S)_(?![\w_])|(?<![\w~])~(?=\S)([^~\n]+?)(?<=\S)~(?![\w~])|:([a-z0-9_+-]+):/g;

export function mrkdwn(text, directory) {
  const whole = element("div", { class: "text" });
  text.split("```").forEach((piece, number) => {
    if (number % 2) whole.append(element("pre", {}, unescape(piece.replace(/^\n|\n$/g, ""))));
    else whole.append(...lines(number ? piece.replace(/^\n/, "") : piece, directory));
  });
  return whole;
}

function* lines(text, directory) {
  let quote = null;
  for (const [number, line] of text.split("\n").entries()) {
    if (line.startsWith("&gt;")) {
      if (!quote) yield (quote = element("blockquote"));
      else quote.append(element("br"));
      quote.append(...inline(line.slice(4).trimStart(), directory));
      continue;
    }
    if (number && !quote) yield element("br");
    quote = null;
    yield* inline(line, directory);
  }
}

function* inline(text, directory) {
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > end) yield unescape(text.slice(end, found.index));
    end = found.index + found[0].length;
    const [whole, code, marked, bold, italic, struck, emoji] = found;
    if (code) yield element("code", {}, unescape(code.slice(1, -1)));
    else if (marked) yield reference(marked, directory);
    else if (bold) yield element("strong", {}, ...inline(bold, directory));
    else if (italic) yield element("em", {}, ...inline(italic, directory));
    else if (struck) yield element("s", {}, ...inline(struck, directory));
    else yield EMOJI[emoji] ?? whole;
  }
  if (end < text.length) yield unescape(text.slice(end));
}

function reference(marked, directory) {
  const [target, label] = marked.split("|");
  if (target.startsWith("@")) return element("span", { class: "mention" }, "@" + directory.user(target.slice(1)));
  if (target.startsWith("#")) return element("span", { class: "mention" }, "#" + (label ?? directory.channel(target.slice(1))));
  if (target.startsWith("!date^")) return unescape(label ?? target);
  if (target.startsWith("!")) return element("span", { class: "mention broadcast" }, "@" + target.slice(1).split("^")[0]);
  return link(unescape(target), unescape(label ?? target));
}

const link = (address, label) => element("a", { href: safe(address), target: "_blank", rel: "noreferrer" }, label);

// CommonMark, as far as bots write it

export function markdown(text) {
  const whole = element("div", { class: "text markdown" });
  const rows = text.split("\n");
  while (rows.length) {
    const row = rows.shift();
    const heading = /^(#{1,6})\s+(.*)/.exec(row);
    if (/^```/.test(row)) {
      const end = rows.findIndex((line) => /^```/.test(line));
      whole.append(element("pre", {}, rows.splice(0, end < 0 ? rows.length : end).join("\n")));
      rows.shift();
    } else if (heading) whole.append(element("h" + Math.min(6, heading[1].length + 2), {}, ...spans(heading[2])));
    else if (/^\s*\|/.test(row)) whole.append(grid([row, ...take(rows, /^\s*\|/)].filter((r) => !/^[\s|:-]+$/.test(r))));
    else if (/^\s*[-*+]\s/.test(row)) whole.append(list("ul", [row, ...take(rows, /^\s*[-*+]\s/)], /^\s*[-*+]\s+/));
    else if (/^\s*\d+[.)]\s/.test(row)) whole.append(list("ol", [row, ...take(rows, /^\s*\d+[.)]\s/)], /^\s*\d+[.)]\s+/));
    else if (/^>/.test(row)) whole.append(element("blockquote", {}, ...spans([row, ...take(rows, /^>/)].map((r) => r.replace(/^>\s?/, "")).join("\n"))));
    else if (row.trim()) whole.append(element("p", {}, ...spans([row, ...take(rows, /^(?!\s*$|[#>|`]|\s*[-*+]\s|\s*\d+[.)]\s)/)].join("\n"))));
  }
  return whole;
}

function take(rows, pattern) {
  const end = rows.findIndex((row) => !pattern.test(row));
  return rows.splice(0, end < 0 ? rows.length : end);
}

const list = (kind, rows, mark) => element(kind, {}, ...rows.map((row) => element("li", {}, ...spans(row.replace(mark, "")))));

const grid = (rows) => element("table", {}, ...rows.map((row, number) => element("tr", {},
  ...row.trim().replace(/^\||\|$/g, "").split("|").map((cell) => element(number ? "td" : "th", {}, ...spans(cell.trim()))))));

const SPAN = /(`[^`]+`)|!?\[([^\]]+)\]\(([^)\s]+)\)|(?:\*\*|__)(?=\S)(.+?)(?<=\S)(?:\*\*|__)|(?<![\w*])[*_](?=\S)([^*_\n]+?)(?<=\S)[*_](?![\w*])/g;

function* spans(text) {
  let end = 0;
  for (const [whole, code, label, address, bold, italic, at] of [...text.matchAll(SPAN)].map((m) => [...m, m.index])) {
    if (at > end) yield unescape(text.slice(end, at));
    end = at + whole.length;
    if (code) yield element("code", {}, code.slice(1, -1));
    else if (label) yield link(address, label);
    else yield element(bold ? "strong" : "em", {}, ...spans(bold ?? italic));
  }
  if (end < text.length) yield unescape(text.slice(end));
}

// blocks

export function render(block, context) {
  const shown = BLOCKS[block.type]?.(block, context) ?? element("p", { class: "unknown" }, `[${block.type}]`);
  shown.dataset.block = block.type;
  return shown;
}

const BLOCKS = {
  section: (block, context) => element("div", { class: "section" },
    block.text && words(block.text, context),
    block.fields && element("div", { class: "fields" }, ...block.fields.map((field) => words(field, context))),
    block.accessory && part(block.accessory, context)),
  header: (block) => element("h3", {}, block.text.text),
  divider: () => element("hr"),
  context: (block, context) => element("div", { class: "context" }, ...block.elements.map((one) => part(one, context))),
  actions: (block, context) => element("div", { class: "actions" }, ...block.elements.map((one) => part(one, context))),
  context_actions: (block, context) => BLOCKS.actions(block, context),
  markdown: (block) => markdown(block.text),
  image: (block) => element("p", { class: "image" }, link(block.image_url ?? "", block.alt_text)),
  table: (block, context) => element("table", {}, ...block.rows.map((row) => element("tr", {},
    ...row.map((cell) => element("td", {}, cell.type === "rich_text" ? render(cell, context) : cell.text ?? ""))))),
  rich_text: (block, context) => element("div", { class: "text" }, ...block.elements.map((one) => rich(one, context))),
};

const words = (text, context) =>
  text.type === "mrkdwn" ? mrkdwn(text.text, context.directory) : element("div", { class: "text plain" }, text.text);

function part(one, context) {
  if (one.type === "button") return button(one, context);
  if (one.type === "image") return element("span", { class: "image" }, one.alt_text);
  return one.text ? words(one, context) : element("span", { class: "unknown" }, `[${one.type}]`);
}

const button = (one, context) => element("button", {
  type: "button", class: `block-button ${one.style ?? ""}`, "data-action": one.action_id,
  onclick: () => {
    if (safe(one.url ?? "")) window.open(one.url, "_blank", "noreferrer");
    context.press(one.action_id);
  },
}, one.text.text);

function rich(one, context) {
  switch (one.type) {
    case "rich_text_section": return element("p", {}, ...one.elements.map((inner) => rich(inner, context)));
    case "rich_text_preformatted": return element("pre", {}, ...one.elements.map((inner) => rich(inner, context)));
    case "rich_text_quote": return element("blockquote", {}, ...one.elements.map((inner) => rich(inner, context)));
    case "rich_text_list": return element(one.style === "ordered" ? "ol" : "ul", {},
      ...one.elements.map((inner) => element("li", {}, rich(inner, context))));
    case "user": return reference("@" + one.user_id, context.directory);
    case "channel": return reference("#" + one.channel_id, context.directory);
    case "broadcast": return reference("!" + one.range, context.directory);
    case "link": return link(one.url, one.text ?? one.url);
    case "emoji": return element("span", {}, EMOJI[one.name] ?? `:${one.name}:`);
    default: {
      const style = one.style ?? {};
      const name = style.code ? "code" : style.bold ? "strong" : style.italic ? "em" : style.strike ? "s" : "span";
      return element(name, {}, one.text ?? "");
    }
  }
}
