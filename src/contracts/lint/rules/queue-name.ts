// BullMQ refuses ':' in queue names and in custom job ids, but only when the code runs.

import type { Report } from '../finding.ts';
import type { Place } from '../place.ts';
import { readKey } from '../read-key.ts';
import { readingCode, type Reading } from '../reading.ts';
import type { RuleContext, TextRule } from '../rule.ts';
import { fragmentCode, type Text } from '../text.ts';

/** Their first argument is a queue's name: BullMQ's classes, and Nest's decorators. */
const queueCalls = new Set([
  'Queue',
  'Worker',
  'QueueEvents',
  'FlowProducer',
  'Processor',
  'InjectQueue',
]);
/** `Worker` is also a thread, whose argument is a file or a URL. */
const threadModules = /^(?:node:)?worker_threads$/;
const url = /^(?:https?|file|data|blob|node):/;

export const queueNameRule: TextRule = (candidate, context) => {
  const { text } = candidate;
  if (!text.form.includes(':')) return undefined;
  const { place } = candidate;
  if (place.isProperty && place.slot === 'expression') {
    if (place.name === 'jobId') return jobIdReport(text);
    if (place.name === 'queueName') return queueReport(text, place);
  }
  return isQueueArgument(text, place, context) ? queueReport(text, place) : undefined;
};

function isQueueArgument(text: Text, { argument }: Place, { imports }: RuleContext): boolean {
  if (argument?.index !== 0 || url.test(text.form)) return false;
  const { name, module } = imports.get(argument.callee) ?? { name: argument.callee, module: '' };
  return queueCalls.has(name) && !threadModules.test(module);
}

function queueReport(text: Text, { argument }: Place): Report {
  const reading = readKey(text.form);
  const address =
    reading?.builder === 'redisKeys.queue'
      ? readingCode({ ...reading, builder: 'redisKeys.queueAddress' }, text)
      : undefined;
  if (address === undefined) {
    return report(text, {
      reason: "BullMQ refuses ':' in a queue's name",
      suggestion: fragmentCode(text.form.replaceAll(':', '-').replace(/[{}]/g, ''), text),
    });
  }
  // With no options behind the name, the prefix can be given in the same breath.
  const options = argument?.count === 1 ? `, { prefix: ${address}.prefix }` : '';
  return report(text, {
    reason:
      "BullMQ refuses ':' in a queue's name: give it the name and the prefix of redisKeys.queueAddress",
    suggestion: `${address}.name${options}`,
  });
}

function jobIdReport(text: Text): Report {
  const reading: Reading | undefined = readKey(text.form);
  const code = reading?.builder === 'redisKeys.jobId' ? readingCode(reading, text) : undefined;
  return report(text, {
    reason:
      "BullMQ refuses ':' in a job id: encodeJobId writes it so that decodeJobId reads it back",
    suggestion: `encodeJobId(${code ?? fragmentCode(text.form, text)})`,
  });
}

function report(text: Text, said: Pick<Report, 'reason' | 'suggestion'>): Report {
  return { rule: 'queue-name', start: text.start, end: text.end, ...said };
}
