// Events for people and for scripts: one line each.

import type { RecordedEvent } from '../store/recorded-event.ts';
import type { Paint } from './paint.ts';

export interface EventTextOptions {
  readonly paint: Paint;
  readonly json: boolean;
  /** Which stream it is of; needless when there is only one. */
  readonly withStream: boolean;
}

export function eventText(event: RecordedEvent, options: EventTextOptions): string {
  if (options.json) return `${JSON.stringify(event)}\n`;
  const { paint } = options;
  const place = options.withStream ? `${event.stream} ${event.revision}` : String(event.revision);
  const parts = [
    paint.bold(harmless(place)),
    paint.dim(event.recordedAt),
    paint.cyan(harmless(event.type)),
    harmless(JSON.stringify(event.payload)),
  ];
  return `${parts.join('  ')}\n`;
}

/** Whatever somebody put into an event, it does not get to steer the terminal. */
function harmless(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '\ufffd');
}
