// Which topics there may be.

import { refused } from './ntfy-problems.ts';

const topic = /^[-_A-Za-z0-9]{1,64}$/;

/** Paths of ntfy's own that a topic would hide. */
const ntfyReserved = [
  'docs',
  'static',
  'file',
  'app',
  'metrics',
  'account',
  'settings',
  'signup',
  'login',
  'v1',
];

/** Paths of the product, on whose port topics stand at the root. */
const productReserved = ['api', 'admin', 'console', 'ws', 'health'];

export const reservedTopics: readonly string[] = [...ntfyReserved, ...productReserved];

/** Also of a sequence id, which has the same form. */
export function isTopicName(text: string): boolean {
  return topic.test(text);
}

export function checkTopic(name: string, reserved: readonly string[] = reservedTopics): void {
  if (!isTopicName(name)) throw refused('topicInvalid');
  if (reserved.includes(name)) throw refused('topicDisallowed');
}
