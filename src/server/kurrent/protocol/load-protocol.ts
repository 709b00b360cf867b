// gRPC and the codecs of all messages, built once per process from the proto texts.

import type * as GrpcJs from '@grpc/grpc-js';
import type { Type } from 'protobufjs';
import { loadDriver } from '../../../foundation/load-driver.ts';
import { persistentProto } from './persistent-proto.ts';
import { serverProto } from './server-proto.ts';
import { sharedProto } from './shared-proto.ts';
import { streamsProto } from './streams-proto.ts';
import { streamsV2Proto } from './streams-v2-proto.ts';

type Grpc = typeof GrpcJs;

interface Codec<T> {
  readonly encode: (value: T) => Buffer;
  readonly decode: (bytes: Uint8Array) => T;
}

export interface Protocol {
  readonly grpc: Grpc;
  /** The codec of the message with this full name. */
  codec<T>(name: string): Codec<T>;
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
  for (const text of [sharedProto, streamsProto, serverProto, persistentProto, streamsV2Proto]) {
    protobuf.parse(text, root);
  }
  root.resolveAll();
  const codecs = new Map<string, unknown>();
  return {
    grpc,
    codec<T>(name: string) {
      let codec = codecs.get(name) as Codec<T> | undefined;
      if (codec === undefined) {
        const type = root.lookupType(name);
        absentIsUndefined(type, new Set());
        codec = {
          // Without the validation of protobufjs, which doubles the cost: the compiler checks the types.
          encode: (value) => asBuffer(type.encode(value as Record<string, unknown>).finish()),
          decode: (bytes) => type.decode(bytes) as unknown as T,
        };
        codecs.set(name, codec);
      }
      return codec;
    },
  };
}

/**
 * Decodes absent members as undefined; the default of protobufjs is null, and zero for 64-bit numbers.
 */
function absentIsUndefined(type: Type, seen: Set<Type>): void {
  if (seen.has(type)) return;
  seen.add(type);
  for (const field of type.fieldsArray) {
    const message = field.resolvedType !== null && 'fieldsArray' in field.resolvedType;
    const optional = field.options?.['proto3_optional'] === true;
    if ((message || optional) && !field.repeated && !field.map) {
      (type.ctor.prototype as Record<string, unknown>)[field.name] = undefined;
    }
    const inner = field.resolvedType;
    if (inner !== null && 'fieldsArray' in inner) absentIsUndefined(inner, seen);
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
