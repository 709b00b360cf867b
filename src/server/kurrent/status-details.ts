// Errors with typed details: `google.rpc.Status` around a message of the protocol.

import type { Protocol } from './protocol/load-protocol.ts';
import type { WireStatus } from './protocol/wire-types.ts';

export interface StatusDetails {
  /** The message's name on the wire. */
  readonly type: string;
  /** The codec that writes it; several messages of the protocol are alike. */
  readonly codec: string;
  readonly value: object;
}

export function toStatus(
  protocol: Protocol,
  { code, message, details }: { code: number; message: string; details?: StatusDetails },
): WireStatus {
  if (details === undefined) return { code, message };
  const value = protocol.codec<object>(details.codec).encode(details.value);
  return { code, message, details: { typeUrl: `type.googleapis.com/${details.type}`, value } };
}

export function encodeStatus(protocol: Protocol, status: WireStatus): Buffer {
  return protocol.codec<WireStatus>('event_store.client.Status').encode(status);
}
