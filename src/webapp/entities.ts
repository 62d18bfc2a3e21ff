/**
 * Decodes one named character like `&eacute;`, as markdown-it needs it; returns other text as it is. The build puts this file in
 * place of the library `entities`, because the browser has that table already.
 */
export function decodeHTMLStrict(text: string): string {
  if (!/^&\w+;$/.test(text)) return text;
  const holder = document.createElement('span');
  holder.innerHTML = text;
  return holder.textContent ?? text;
}
