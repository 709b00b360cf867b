// How the body of a publish is used: as the text, as a file, or as the data of a template (templates/templated-text.ts).
// Pure.

import { isUtf8 } from 'node:buffer';
import { ntfyError } from './ntfy-problems.ts';
import type { PublishParams } from './publish-params.ts';

/** The first bytes of a body, at most as many as a message may have. */
export interface PeekedBody {
  readonly head: Buffer;
  /** There may be more bytes. */
  readonly isCut: boolean;
}

export type BodyUse = 'discard' | 'unified-push' | 'text' | 'attachment' | 'template';

export function useOfBody(params: PublishParams, body: PeekedBody): BodyUse {
  if (params.pollId !== '') return 'discard';
  if (params.isUnifiedPush) return 'unified-push';
  if (params.attach !== '') return 'text';
  if (params.filename !== '') return 'attachment';
  if (params.template !== '') return 'template';
  return !body.isCut && isUtf8(body.head) ? 'text' : 'attachment';
}

export interface MessageText {
  readonly title: string;
  readonly message: string;
  readonly priority: number | undefined;
  readonly encoding?: string | undefined;
}

export function textOfBody(params: PublishParams, { head }: PeekedBody): MessageText {
  if (!isUtf8(head)) throw ntfyError('messageNotUtf8');
  const { title, priority } = params;
  const message = head.length === 0 ? params.message : head.toString('utf8').trim();
  const name = attachedName(params);
  const file = name === '' ? '' : `You received a file: ${name}`;
  return { title, priority, message: message === '' ? file : message };
}

export function unifiedPushText(params: PublishParams, { head }: PeekedBody): MessageText {
  const { title, priority } = params;
  if (isUtf8(head)) return { title, priority, message: head.toString('utf8') };
  return { title, priority, message: head.toString('base64'), encoding: 'base64' };
}

/** The given file name, or the last part of the attachment's URL. */
export function attachedName({ attach, filename }: PublishParams): string {
  if (filename !== '' || attach === '') return filename;
  const path = URL.canParse(attach) ? decoded(new URL(attach).pathname) : '';
  const name = path.split('/').findLast((part) => part !== '') ?? '';
  return name === '' || name === '.' ? 'attachment' : name;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
