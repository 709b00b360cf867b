// A long deed whose caller wants to see how far it is: server-sent events instead of one answer at the end.

import { MillraceError } from '../../foundation/error.ts';
import type { SentEvent } from '../../platform/modules/server-sent-events.ts';
import type { ApiRequest } from '../../platform/modules/route.ts';

export function wantsProgress({ headers }: Pick<ApiRequest, 'headers'>): boolean {
  return (headers['accept'] ?? '').includes('text/event-stream');
}

/** `progress`, as often as the reader takes it, the newest each time; then `done` or `failed`. */
export async function* toldProgress<Progress, Outcome>(
  done: Promise<Outcome>,
  news: ProgressNews<Progress>,
): AsyncGenerator<SentEvent> {
  const ended = done.then(
    (outcome): SentEvent => ({ event: 'done', data: outcome }),
    (error: unknown): SentEvent => ({ event: 'failed', data: failureOf(error) }),
  );
  for (;;) {
    const next = await Promise.race([ended, news.next()]);
    if (!('progress' in next)) {
      yield next;
      return;
    }
    yield { event: 'progress', data: next.progress };
  }
}

export interface ProgressNews<Progress> {
  readonly tell: (progress: Progress) => void;
  /** Resolves with the newest that was not taken yet. */
  readonly next: () => Promise<{ readonly progress: Progress }>;
}

export function createProgressNews<Progress>(): ProgressNews<Progress> {
  let waiting = Promise.withResolvers<void>();
  let newest: { readonly progress: Progress } | undefined;
  return {
    tell(progress) {
      newest = { progress };
      waiting.resolve();
    },
    async next() {
      for (;;) {
        const taken = newest;
        newest = undefined;
        if (taken !== undefined) return taken;
        waiting = Promise.withResolvers();
        await waiting.promise;
      }
    },
  };
}

function failureOf(error: unknown): object {
  if (error instanceof MillraceError) return { code: error.code, detail: error.message };
  return { code: 'INTERNAL', detail: 'it failed; the log has why' };
}
