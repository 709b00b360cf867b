// The API's description of itself: OpenAPI for programs, a page for people.

import { openApiDocument, type OpenApiInfo } from '../http/openapi.ts';
import { referencePage } from '../http/reference-page.ts';
import { route, type Route } from '../../platform/modules/route.ts';

export function referenceRoutes(routes: readonly Route[], info: OpenApiInfo): readonly Route[] {
  const base = { method: 'GET', tag: 'reference', access: 'anonymous' } as const;
  const own: Route[] = [
    route({
      ...base,
      path: '/openapi.json',
      summary: 'This API as OpenAPI 3.1',
      answers: { 200: { description: 'The document' } },
      handle: async () => ({ body: document() }),
    }),
    route({
      ...base,
      path: '/docs',
      summary: 'This API as a page',
      answers: { 200: { description: 'The page', contentType: 'text/html' } },
      handle: async () => page(),
    }),
  ];
  const all = [...routes, ...own];
  let kept: { readonly json: unknown; readonly html: string } | undefined;
  const made = (): { readonly json: unknown; readonly html: string } =>
    (kept ??= { json: openApiDocument(all, info), html: referencePage(all, info) });
  const document = (): unknown => made().json;
  const page = () => ({
    contentType: 'text/html; charset=utf-8',
    headers: {
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
    },
    stream: one(made().html),
  });
  return own;
}

async function* one(text: string): AsyncGenerator<string> {
  yield text;
}
