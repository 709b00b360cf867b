// Answers in ntfy's form.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { hasCode } from '../../foundation/error.ts';
import type { Observer } from '../../foundation/observer.ts';
import {
  ntfyProblems,
  type NtfyProblem,
  type NtfyProblemName,
} from '../../notify/ntfy-problems.ts';

const bytesLeftMax = 16 * 1_048_576;

/** Every answer says so: pages of any origin may call. */
export const anyOrigin = ['Access-Control-Allow-Origin', '*'] as const;

export function answerJson(
  response: ServerResponse,
  json: string,
  options: { readonly status?: number; readonly headers?: readonly string[] } = {},
): void {
  const { status = 200, headers = anyOrigin } = options;
  const body = Buffer.from(`${json}\n`);
  response.writeHead(status, [
    ...headers,
    'Content-Type',
    'application/json',
    'Content-Length',
    String(body.length),
  ]);
  response.end(body);
}

export interface ToldProblem {
  readonly status: number;
  readonly json: string;
}

/** What is nobody's mistake but ours is in the log, and not told. */
export function toldProblem(error: unknown, observer: Observer): ToldProblem {
  const name = problemOf(error);
  if (name === 'internal') observer.log?.error({ err: error }, 'request of a topic failed');
  const problem: NtfyProblem = ntfyProblems[name];
  const status = Math.floor(problem.code / 100);
  const said = hasCode(error, 'NOTIFY_REFUSED') ? error.message : problem.error;
  const { code, link } = problem;
  const json = JSON.stringify({
    code,
    http: status,
    error: said,
    ...(link === undefined ? {} : { link: `https://ntfy.sh/docs${link}` }),
  });
  return { status, json };
}

function problemOf(error: unknown): NtfyProblemName {
  if (!hasCode(error, 'NOTIFY_REFUSED')) return 'internal';
  const name = error.details['problem'];
  return typeof name === 'string' && name in ntfyProblems ? (name as NtfyProblemName) : 'internal';
}

export function answerProblem(
  request: IncomingMessage,
  response: ServerResponse,
  { status, json }: ToldProblem,
): void {
  // Begun already: all that is left is to let the client see that it is not whole.
  if (response.headersSent || response.destroyed) return void response.destroy();
  // Not with 'Connection: close': the socket would go, and with it the answer, while the client is sending.
  if (request.method === 'HEAD') response.writeHead(status, [...anyOrigin]).end();
  else answerJson(response, json, { status, headers: anyOrigin });
  if (!request.complete) drain(request);
}

/** A client that is still sending reads its answer only once it has sent; not for ever. */
function drain(request: IncomingMessage): void {
  let left = bytesLeftMax;
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  });
  request.resume();
}
