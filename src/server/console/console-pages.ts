// Serves the built files of the console from `console/dist`. All addresses in the page are relative, so the console works
// under any base path.

import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { IncomingHttpHeaders } from 'node:http';
import { fileURLToPath } from 'node:url';
import type { Observer } from '../../foundation/observer.ts';
import type { StreamResponse } from '../../platform/modules/route.ts';
import type { ServePage } from '../http/respond.ts';

/** The same path in the repository and in the published package. */
const builtFolder = fileURLToPath(new URL('../../../console/dist/', import.meta.url));

const prefix = '/console';
const html = 'text/html; charset=utf-8';
const contentTypes: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const encodings = { br: '.br', gzip: '.gz' } as const;

const pageHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

export function consolePages({
  folder = builtFolder,
  observer,
}: {
  /** Default: the files of this package. */
  readonly folder?: string | undefined;
  readonly observer?: Observer | undefined;
} = {}): ServePage {
  /** Read with the first request, so that the start of the server does not depend on the console. */
  const readIndex = (): Promise<string | undefined> =>
    readFile(join(folder, 'index.html'), 'utf8').catch((error: unknown) => {
      observer?.log?.warn({ err: error }, 'the console is not built: run npm run console:build');
      return undefined;
    });

  return async (path, headers) => {
    if (path.startsWith(`${prefix}/assets/`)) {
      return asset(join(folder, 'assets'), path.slice(`${prefix}/assets/`.length), headers);
    }
    const isPage = path === '/' || path === prefix || path.startsWith(`${prefix}/`);
    // Programs do not ask for HTML, and get problem details.
    if (!isPage || headers.accept?.includes('text/html') !== true) return undefined;
    if (path === '/' || path === prefix) {
      return { ...text(html, ''), status: 302, headers: { location: 'console/' } };
    }
    const index = await readIndex();
    if (index === undefined)
      return { ...text(html, missingPage), status: 503, headers: pageHeaders };
    const depth = path.slice(prefix.length + 1).split('/').length - 1;
    const page = index.replaceAll('"./assets/', `"${'../'.repeat(depth) || './'}assets/`);
    return { ...text(html, page), headers: pageHeaders };
  };
}

/** The name contains a hash of the content, so browsers never ask for a file again. */
async function asset(
  folder: string,
  name: string,
  { 'accept-encoding': accepted = '' }: IncomingHttpHeaders,
): Promise<StreamResponse | undefined> {
  // Only names of the folder are read, whatever the path contains.
  const names = await readdir(folder).catch((): string[] => []);
  const contentType = contentTypes[extname(name)];
  if (contentType === undefined || !names.includes(name)) return undefined;
  const encoding = (['br', 'gzip'] as const).find(
    (each) => accepted.includes(each) && names.includes(`${name}${encodings[each]}`),
  );
  const file = encoding === undefined ? name : `${name}${encodings[encoding]}`;
  const bytes = await readFile(join(folder, file));
  return {
    contentType,
    stream: single(bytes),
    headers: {
      'cache-control': 'public, max-age=31536000, immutable',
      'content-length': String(bytes.length),
      'cross-origin-resource-policy': 'same-origin',
      vary: 'accept-encoding',
      ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
    },
  };
}

function text(contentType: string, content: string): StreamResponse {
  return { contentType, stream: single(content) };
}

async function* single(part: string | Uint8Array): AsyncGenerator<string | Uint8Array> {
  yield part;
}

const missingPage = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Millrace</title></head>
<body>
<h1>The console is not built</h1>
<p>The server is running. Run <code>npm run console:build</code> in the folder of Millrace, and load this page again.</p>
</body>
</html>
`;
