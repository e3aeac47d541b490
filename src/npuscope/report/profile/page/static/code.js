// Python, coloured just enough to be read.

const TOKEN = /(#.*$)|("""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|\b(and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|not|or|pass|raise|return|try|while|with|yield|None|True|False)\b|\b(\d[\w.]*)\b/g;

function coloured(text) {
  const out = document.createDocumentFragment();
  let at = 0;
  for (const found of text.matchAll(TOKEN)) {
    out.append(text.slice(at, found.index));
    const kind = found[1] ? "comment" : found[2] ? "string" : found[3] ? "keyword" : "number";
    out.append(el("span", { class: `code-${kind}` }, found[0]));
    at = found.index + found[0].length;
  }
  out.append(text.slice(at));
  return out;
}
