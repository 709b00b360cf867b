// The routes as one HTML page without scripts, for all browsers and screen sizes.

import type { TSchema } from 'typebox';
import { headersOf, type OpenApiInfo } from './openapi.ts';
import type { Route } from '../../platform/modules/route.ts';

export function referencePage(routes: readonly Route[], info: OpenApiInfo): string {
  const groups = Map.groupBy(routes, ({ tag }) => tag);
  const contents = [...groups.keys()].map((tag) => `<a href="#${slug(tag)}">${escape(tag)}</a>`);
  const sections = [...groups].map(
    ([tag, all]) =>
      `<section id="${slug(tag)}"><h2>${escape(tag)}</h2>${all.map(routeHtml).join('')}</section>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(info.title)}</title>
<style>${style}</style>
</head>
<body>
<header>
<h1>${escape(info.title)} <small>${escape(info.version)}</small></h1>
<p>${escape(info.description ?? '')} <a href="/openapi.json">OpenAPI 3.1</a></p>
<nav>${contents.join('')}</nav>
</header>
<main>${sections.join('')}</main>
</body>
</html>
`;
}

function routeHtml(route: Route): string {
  const { method, path, summary, description, access, responses } = route;
  const body = route.bodyShown ?? route.body;
  const inputs = [
    ...fieldRows('path', route.params),
    ...fieldRows('query', route.query),
    ...Object.entries(headersOf(route)).map(([name, text]) => headerRow(name, text)),
    ...fieldRows('body', body),
  ];
  const outcomes = Object.entries(responses).map(
    ([status, { description: text, headers = {} }]) =>
      `<tr><td><code>${status}</code></td><td>${[text, ...Object.entries(headers).map(([name, about]) => `\`${name}\`: ${about}`)].map(prose).join('<br>')}</td></tr>`,
  );
  return `<details>
<summary><b class="${method.toLowerCase()}">${method}</b> <code>${escape(path)}</code> <span>${escape(summary)}</span></summary>
${description === undefined ? '' : `<p>${prose(description)}</p>`}
<p class="access">${access === 'anonymous' ? 'For everybody.' : `Needs the scope <code>${access}</code>.`}</p>
${inputs.length === 0 ? '' : `<table><tr><th>input</th><th>in</th><th>is</th></tr>${inputs.join('')}</table>`}
<table><tr><th>response</th><th>when</th></tr>${outcomes.join('')}</table>
</details>`;
}

function headerRow(name: string, text: string): string {
  return `<tr><td><code>${escape(name)}</code> <i>optional</i></td><td>header</td><td>${prose(text)}</td></tr>`;
}

interface Described {
  readonly type?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Described[];
  readonly items?: Described;
  readonly description?: unknown;
  readonly properties?: Readonly<Record<string, Described>>;
  readonly required?: readonly string[];
}

/** A row for each field, and for the fields of nested objects, one level deep. */
function fieldRows(location: string, schema: TSchema | undefined, within = ''): readonly string[] {
  const { properties = {}, required = [] } = (schema ?? {}) as Described;
  return Object.entries(properties).flatMap(([name, field]) => {
    const { description } = field;
    const optional = required.includes(name) ? '' : ' <i>optional</i>';
    const parts = [kindOf(field), typeof description === 'string' ? description : ''];
    const what = prose(parts.filter((text) => text !== '').join('; '));
    const row = `<tr><td><code>${escape(within + name)}</code>${optional}</td><td>${location}</td><td>${what}</td></tr>`;
    const inner = within === '' ? fieldRows(location, field, `${name}.`) : [];
    return [row, ...inner];
  });
}

function kindOf({ type, const: only, enum: some, anyOf, items }: Described): string {
  if (only !== undefined) return JSON.stringify(only);
  if (some !== undefined) return some.map((each) => JSON.stringify(each)).join(' | ');
  if (anyOf !== undefined) return anyOf.map(kindOf).join(' | ');
  if (type === 'array') return `list of ${items === undefined ? 'anything' : kindOf(items)}`;
  return typeof type === 'string' ? type : '';
}

/** Text in backticks becomes code. */
function prose(text: string): string {
  return escape(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}

function slug(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

const style = `
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); --soft: color-mix(in srgb, currentColor 65%, transparent); }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem 1.25rem 4rem; }
h1 { font-size: 1.6rem; margin: 1rem 0 .25rem; } h1 small { color: var(--soft); font-size: 1rem; font-weight: 400; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; }
details { border-top: 1px solid var(--line); padding: .35rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; } summary span { color: var(--soft); }
summary b { display: inline-block; font-size: .8rem; min-width: 3.8rem; }
.get { color: #0a7d4b; } .post { color: #2563c9; } .delete { color: #c0392b; } .put, .patch { color: #b26a00; }
@media (prefers-color-scheme: dark) { .get { color: #4cc38a; } .post { color: #7aa7ff; } .delete { color: #ff7b6b; } .put, .patch { color: #e6a23c; } }
table { border-collapse: collapse; margin: .5rem 0; width: 100%; } th { color: var(--soft); font-weight: 500; text-align: left; }
td, th { border-top: 1px solid var(--line); padding: .25rem .75rem .25rem 0; vertical-align: top; overflow-wrap: break-word; }
details { overflow-x: auto; }
code { font: .9em ui-monospace, monospace; } .access { color: var(--soft); margin: .25rem 0; }
`;
