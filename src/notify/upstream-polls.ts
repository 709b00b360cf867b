// iPhones hear of messages through another server only: it is told that there is one, not what it says.

import { createHash } from 'node:crypto';
import type { Observer } from '../foundation/observer.ts';
import type { TopicMessage } from './topic-message.ts';

const underWayMax = 100;
const timeoutMs = 10_000;

export function createUpstreamPolls(options: {
  readonly baseUrl: string;
  readonly upstreamUrl: string;
  readonly upstreamToken?: string | undefined;
  readonly observer: Observer;
}): (message: TopicMessage) => void {
  const { baseUrl, upstreamUrl, upstreamToken, observer } = options;
  let underWay = 0;

  async function tell({ id, topic }: TopicMessage): Promise<void> {
    const hash = createHash('sha256').update(`${baseUrl}/${topic}`).digest('hex');
    const answer = await fetch(`${upstreamUrl}/${hash}`, {
      method: 'POST',
      headers: {
        'x-poll-id': id,
        ...(upstreamToken === undefined ? {} : { authorization: `Bearer ${upstreamToken}` }),
      },
      signal: AbortSignal.timeout(timeoutMs),
    });
    await answer.body?.cancel();
    if (!answer.ok) observer.log?.warn({ status: answer.status }, 'poll request was not taken');
  }

  return (message) => {
    if (message.event !== 'message') return;
    if (underWay >= underWayMax) {
      observer.log?.warn({}, 'poll request left out: too many are under way');
      return;
    }
    underWay += 1;
    tell(message)
      .catch((error: unknown) => observer.log?.warn({ err: error }, 'poll request failed'))
      .finally(() => (underWay -= 1));
  };
}
