// Events as the API shows them: the envelope and where it was recorded.

import type { TSchema } from 'typebox';
import { Type } from '../../contracts/type.ts';
import { envelopeJsonSchema } from '../../contracts/envelope.ts';

const { properties = {}, required = [] } = envelopeJsonSchema as {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
};

export const eventSchema: TSchema = Type.Unsafe({
  type: 'object',
  title: 'RecordedEvent',
  properties: {
    ...properties,
    stream: { type: 'string' },
    revision: { type: 'integer' },
    position: { type: 'string', description: 'Opaque; totally ordered.' },
    recordedAt: { type: 'string' },
  },
  required: [...required, 'stream', 'revision', 'position', 'recordedAt'],
});
