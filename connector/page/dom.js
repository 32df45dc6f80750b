// A tree of plain values, laid over the document: what has not changed stays, with its focus, its selection and its
// scroll. Texts become text nodes and attributes, never markup: nothing that the service says is parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element as it should be. `key` tells siblings apart; `on…` are functions; false and null attributes are absent. */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children: children.flat(Infinity).filter(shown) };
}

/** The children of an element become these. */
export function draw(parent, children) {
  const before = new Map();
  [...parent.childNodes].forEach((node, at) => before.set(node.key ?? `${at} ${node.nodeName.toLowerCase()}`, node));
  const wanted = [children].flat(Infinity).filter(shown);
  const kept = wanted.map((child, at) => {
    const key = child.props?.key ?? `${at} ${child.tag ?? "#text"}`;
    const found = before.get(key);
    const node = found && fits(found, child) ? found : made(parent, child, key);
    before.delete(key);
    return node;
  });
  // What goes, goes first: what stays is then in its place, and is not moved, which would take its focus away.
  for (const gone of parent.childNodes.length ? [...parent.childNodes] : []) if (!kept.includes(gone)) gone.remove();
  kept.forEach((node, at) => {
    if (parent.childNodes[at] !== node) parent.insertBefore(node, parent.childNodes[at] ?? null);
    update(node, wanted[at]);
  });
}

function shown(child) {
  return child !== null && child !== undefined && child !== false;
}

function fits(node, child) {
  return child.tag ? node.nodeName.toLowerCase() === child.tag.toLowerCase() : node.nodeType === Node.TEXT_NODE;
}

function made(parent, child, key) {
  if (!child.tag) return document.createTextNode("");
  const inSvg = child.tag === "svg" || (parent.namespaceURI === SVG && parent.nodeName !== "foreignObject");
  const node = inSvg ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  if (child.props.key !== undefined) node.key = key;
  return node;
}

function update(node, child) {
  if (!child.tag) {
    if (node.data !== String(child)) node.data = String(child);
    return;
  }
  const before = node.props ?? {};
  for (const name of Object.keys(before)) if (!(name in child.props)) set(node, name, null);
  for (const [name, value] of Object.entries(child.props)) if (before[name] !== value) set(node, name, value);
  node.props = child.props;
  draw(node, child.children);
}

function set(node, name, value) {
  if (name === "key") return;
  if (name.startsWith("on")) {
    node[name] = value;
  } else if (name.startsWith("--")) {
    // By the object model: the page's policy knows no style attributes.
    node.style.setProperty(name, value);
  } else if (value === null || value === undefined || value === false) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? "" : String(value));
  }
}
