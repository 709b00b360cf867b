// gRPC and the codecs of all messages, built once per process.

import type * as GrpcJs from '@grpc/grpc-js';
import type { ReflectionObject, Type } from 'protobufjs';
import { loadDriver } from '../../../foundation/load-driver.ts';
import type { Field, Fields, Wire } from './message.ts';

type Grpc = typeof GrpcJs;

interface Codec<T> {
  readonly encode: (value: T) => Buffer;
  readonly decode: (bytes: Uint8Array) => T;
}

export interface Protocol {
  readonly grpc: Grpc;
  codec<Message extends Fields>(message: Message): Codec<Wire<Message>>;
}

let loaded: Promise<Protocol> | undefined;

export function loadProtocol(): Promise<Protocol> {
  loaded ??= load().catch((error: unknown) => {
    // A missing package may be installed before the next attempt.
    loaded = undefined;
    throw error;
  });
  return loaded;
}

async function load(): Promise<Protocol> {
  const [grpc, protobuf] = await Promise.all([
    loadDriver('@grpc/grpc-js', () => import('@grpc/grpc-js')),
    loadDriver('protobufjs', async () => (await import('protobufjs')).default),
  ]);
  const root = new protobuf.Root();
  const types = new Map<Fields, Type>();

  const typeOf = (message: Fields): Type => {
    const known = types.get(message);
    if (known !== undefined) return known;
    const type = new protobuf.Type(`Message${types.size}`);
    types.set(message, type);
    root.add(type);
    for (const [name, field] of Object.entries(message)) type.add(toField(name, field));
    const defaults = type.ctor.prototype as Record<string, unknown>;
    for (const [name, { has, of }] of Object.entries(message)) {
      // The default of protobufjs is null, zero for 64-bit numbers, and an array for bytes.
      if (has === 'maybe') defaults[name] = undefined;
      else if (of === 'bytes') defaults[name] = Buffer.alloc(0);
    }
    return type;
  };
  const toField = (name: string, { id, of, kind }: Field): ReflectionObject => {
    const type = typeof of === 'string' ? of : typeOf(typeof of === 'function' ? of() : of).name;
    if (kind === 'map') return new protobuf.MapField(name, id, 'string', type);
    return new protobuf.Field(name, id, type, kind === 'list' ? 'repeated' : undefined);
  };

  return {
    grpc,
    codec(message) {
      const type = typeOf(message);
      return {
        // Without the validation of protobufjs, which doubles the cost: the compiler checks the types.
        encode: (value) => asBuffer(type.encode(value).finish()),
        decode: (bytes) => type.decode(bytes) as unknown as Wire<typeof message>,
      };
    },
  };
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
