/** An element of the page's own HTML. */
export function part(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no #${id}`);
  return found;
}

/** A new element with attributes and what is in it. */
export function element(name: string, attributes: Record<string, string>, ...inside: (Node | string)[]): HTMLElement {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...inside);
  return made;
}

/** Sets a text only where it differs: screen readers and selections notice every change. */
export function setText(node: Element, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** The same, for a place that is not there while there is nothing to say. */
export function setTextOrHide(node: HTMLElement, text: string): void {
  setText(node, text);
  node.hidden = text === "";
}
