// Maps the spans of Millrace to OpenTelemetry's conventions for messaging and HTTP: name, kind and attribute names.

import type { Attributes } from '../../foundation/observer.ts';

export interface ConventionalSpan {
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'producer' | 'consumer';
  readonly attributes: Record<string, string | number | boolean>;
}

/** Conventions by the name of the span in Millrace. `target` is the exported name, which must have few distinct values. */
const conventions: Readonly<
  Record<
    string,
    {
      readonly kind: ConventionalSpan['kind'];
      /** `messaging.operation.name` and `.type`. */
      readonly operation?: readonly [name: string, type: 'create' | 'send' | 'process'];
      readonly target: (attributes: Attributes) => Attributes[string];
    }
  >
> = {
  'http request': { kind: 'server', target: ({ method, route }) => `${method} ${route}` },
  'handle command': { kind: 'internal', target: ({ command }) => `handle ${command}` },
  'append events': {
    kind: 'producer',
    operation: ['append', 'send'],
    target: ({ stream }) => `append ${categoryOf(stream)}`,
  },
  'handle event': {
    kind: 'consumer',
    operation: ['handle', 'process'],
    target: ({ handler }) => `handle ${handler}`,
  },
  'enqueue message': {
    kind: 'producer',
    operation: ['enqueue', 'create'],
    target: ({ integrationType }) => `enqueue ${integrationType}`,
  },
  'deliver message': {
    kind: 'producer',
    operation: ['deliver', 'send'],
    target: ({ integrationType }) => `deliver ${integrationType}`,
  },
};

const attributeNames: Readonly<Record<string, string>> = {
  stream: 'messaging.destination.name',
  integrationType: 'messaging.destination.name',
  handler: 'messaging.consumer.group.name',
  eventId: 'messaging.message.id',
  outboxId: 'messaging.message.id',
  correlationId: 'messaging.message.conversation_id',
  events: 'messaging.batch.message_count',
  method: 'http.request.method',
  route: 'http.route',
  status: 'http.response.status_code',
};

export function toConventions(name: string, attributes: Attributes): ConventionalSpan {
  const { kind = 'internal', operation, target } = conventions[name] ?? {};
  const { integrationType, stream } = attributes;
  const own = toAttributes(attributes);
  if (operation !== undefined) {
    // Trace viewers know Kafka as a messaging system; all other spans name `millrace`.
    const system = String(integrationType).startsWith('kafka:') ? 'kafka' : 'millrace';
    own['messaging.system'] = system;
    own['messaging.operation.name'] = operation[0];
    own['messaging.operation.type'] = operation[1];
    if (integrationType === undefined && stream !== undefined) {
      own['messaging.destination.template'] = categoryOf(stream);
    }
  }
  return { name: String(target?.(attributes) ?? name), kind, attributes: own };
}

export function toAttributes(attributes: Attributes): ConventionalSpan['attributes'] {
  const found: ConventionalSpan['attributes'] = {};
  const { integrationType, outboxId } = attributes;
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    // The destination of an outgoing message is its integration type, not its source stream. The id of the message is
    // the outbox id.
    const isSource =
      (key === 'stream' && integrationType !== undefined) ||
      (key === 'eventId' && outboxId !== undefined);
    const name = isSource ? undefined : attributeNames[key];
    found[name ?? `millrace.${snakeCase(key)}`] = value;
  }
  return found;
}

/** The part before the first `-`: there are many streams, but few categories. */
function categoryOf(stream: Attributes[string]): string {
  return String(stream).split('-', 1)[0] ?? '';
}

function snakeCase(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
