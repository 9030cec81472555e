// Draws the policy tree of the explain page: zoom, pan, fold, and the numbers of the node that is clicked.
"use strict";
const data = JSON.parse(document.getElementById("tree-data").textContent);
const svg = document.getElementById("tree"), panel = document.getElementById("node");
const STEP_X = 150, STEP_Y = 26, SVG = "http://www.w3.org/2000/svg";
const kids = data.nodes.map(() => []);
data.nodes.forEach((node, index) => { if (node.parent >= 0) kids[node.parent].push(index); });

// Shown at first: what was expanded, and the ways to the chosen order and the runner-up. The rest is folded.
const kept = new Set([0]), unfolded = new Set();
data.nodes.forEach((node, index) => { if (node.expanded) keep(index); });
[data.best, data.runnerUp].forEach((index) => { if (index !== null) keep(index); });
function keep(index) { for (let at = index; at >= 0; at = data.nodes[at].parent) kept.add(at); }

const shown = (index) => kids[index].filter((child) => unfolded.has(index) || kept.has(child));
const number = (value, digits = 3) => (value === null ? "–" : value.toFixed(digits));
const name = (order) => (order.length ? order.map((one) => "#" + one).join(" → ") : "empty order");

function element(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return made;
}

let view = { x: -20, y: -20, w: 900, h: 460 }, selected = data.best;

function draw() {
  svg.replaceChildren();
  const place = new Map();
  let row = 0;
  (function layOut(index, depth) {
    const below = shown(index);
    below.forEach((child) => layOut(child, depth + 1));
    const y = below.length ? (place.get(below[0]).y + place.get(below[below.length - 1]).y) / 2 : row++ * STEP_Y;
    place.set(index, { x: depth * STEP_X, y });
  })(0, 0);
  place.forEach((from, index) => shown(index).forEach((child) => {
    const to = place.get(child), middle = (from.x + to.x) / 2;
    svg.append(element("path", { class: "edge", d: `M${from.x},${from.y} C${middle},${from.y} ${middle},${to.y} ${to.x},${to.y}` }));
  }));
  place.forEach((at, index) => svg.append(drawNode(index, at)));
  frame();
  return { rows: row, depth: Math.max(...[...place.values()].map((at) => at.x)) };
}

function drawNode(index, at) {
  const node = data.nodes[index];
  const kind = index === data.best ? " best" : index === data.runnerUp ? " second" : "";
  const group = element("g", {
    class: "node" + kind + (index === selected ? " selected" : ""), transform: `translate(${at.x},${at.y})`,
    tabindex: 0, role: "button", "data-node": index, "aria-label": `order ${name(node.order)}, value ${number(node.value)}`,
  });
  group.append(element("circle", { r: 4 + Math.min(6, Math.sqrt(node.visits)) }));
  const last = node.order.length ? "#" + node.order[node.order.length - 1] : "root";
  group.append(element("text", { x: 13, y: 4 }, `${last}  ${number(node.value)}`));
  const hidden = kids[index].length - shown(index).length;
  if (hidden || unfolded.has(index)) {
    const fold = element("text", { class: "fold", x: 88, y: 4, "data-fold": index }, hidden ? `+${hidden}` : "−");
    group.append(fold);
  }
  return group;
}

function tell(index) {
  selected = index;
  const node = data.nodes[index];
  const rows = [
    ["order", name(node.order)],
    ["value  W − λ·cost/B", number(node.value)],
    ["benefit W", number(node.benefit)],
    ["cost", `${node.tokens} of ${data.budget} tokens`],
    ["visits N", node.visits],
    ["utility U", node.utility === null ? "infinite: not visited yet" : number(node.utility)],
    ["  = V/N + exploration − λ·cost/B", node.utility === null ? "–" : `${number(node.mean)} + ${number(node.explore)} − ${number(node.charge)}`],
  ];
  if (node.promise !== null) rows.push(["promise (selects)", number(node.promise)]);
  rows.push(["expanded", node.expanded ? "yes" : "no"]);
  rows.push(["pruned by the budget", node.pruned.length ? node.pruned.map(([one, over]) => `#${one} (${over} too many)`).join(", ") : "none"]);
  panel.replaceChildren(...rows.map(([key, value]) => {
    const line = document.createElement("tr"), head = document.createElement("th"), cell = document.createElement("td");
    head.textContent = key; cell.textContent = value; line.append(head, cell);
    return line;
  }));
  svg.querySelectorAll(".selected").forEach((one) => one.classList.remove("selected"));
  const group = svg.querySelector(`[data-node="${index}"]`);
  if (group) group.classList.add("selected");
}

function frame() { svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`); }
function zoom(factor, x = view.x + view.w / 2, y = view.y + view.h / 2) {
  view = { x: x - (x - view.x) * factor, y: y - (y - view.y) * factor, w: view.w * factor, h: view.h * factor };
  frame();
}
function fit() {
  const size = draw();
  const w = size.depth + 160, h = Math.max(size.rows * STEP_Y, 120) + 20, scale = Math.max(w / svg.clientWidth, h / svg.clientHeight, 0.8);
  view = { x: -20, y: -20, w: svg.clientWidth * scale, h: svg.clientHeight * scale };
  frame();
}
function toggle(index) {
  if (unfolded.has(index)) unfolded.delete(index); else unfolded.add(index);
  draw();
}
function act(target) {
  if (target.dataset.fold !== undefined) return toggle(Number(target.dataset.fold));
  const group = target.closest("[data-node]");
  if (group) tell(Number(group.dataset.node));
}

let drag = null, moved = false;
svg.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, from: { ...view } }; moved = false; });
window.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const scale = drag.from.w / svg.clientWidth, dx = event.clientX - drag.x, dy = event.clientY - drag.y;
  moved = moved || Math.abs(dx) + Math.abs(dy) > 4;
  view = { ...view, x: drag.from.x - dx * scale, y: drag.from.y - dy * scale };
  frame();
});
window.addEventListener("pointerup", () => { drag = null; });
svg.addEventListener("click", (event) => { if (!moved) act(event.target); });
svg.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const box = svg.getBoundingClientRect();
  const x = view.x + ((event.clientX - box.left) / box.width) * view.w, y = view.y + ((event.clientY - box.top) / box.height) * view.h;
  zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, x, y);
}, { passive: false });
svg.addEventListener("keydown", (event) => {
  const group = event.target.closest("[data-node]");
  if (!group) return;
  const index = Number(group.dataset.node);
  if (event.key === "Enter") tell(index);
  else if (event.key === " ") toggle(index);
  else return;
  event.preventDefault();
  const again = svg.querySelector(`[data-node="${index}"]`);
  if (again) again.focus();
});
document.getElementById("in").addEventListener("click", () => zoom(1 / 1.3));
document.getElementById("out").addEventListener("click", () => zoom(1.3));
document.getElementById("fit").addEventListener("click", fit);
fit();
tell(selected);
