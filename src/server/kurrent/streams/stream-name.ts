// Stream names on the wire are bytes.

import type { WireStreamIdentifier } from '../protocol/shared-messages.ts';
import { badRequest } from '../rpc-error.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function streamNameOf(identifier: WireStreamIdentifier | undefined): string {
  if (identifier === undefined || identifier.streamName.length === 0) {
    throw badRequest('the stream has no name');
  }
  try {
    return utf8.decode(identifier.streamName);
  } catch (error) {
    throw badRequest(`the stream's name is not UTF-8: ${String(error)}`);
  }
}

export function wireStream(stream: string): WireStreamIdentifier {
  return { streamName: Buffer.from(stream) };
}
