// Schemas of the ids, names and texts of events, commands and requests.

import { z } from 'zod';

/** Of the read models and of the streams that the requirement document does not name. */
export const boundedContext = 'notification-slack';

/** The category of `slackAddressing.stream`. */
export const requestCategory = 'notification.slack.request';

export const slackRequestLimits = {
  /** Slack truncates longer texts. */
  textCharsMax: 40_000,
  blocksMax: 50,
  dataBytesMax: 100_000,
  delayMsMax: 30 * 86_400_000,
  priorityMax: 2_097_152,
} as const;

/** The code of a workspace, template, channel or app; also the id of its stream. */
export const code = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/);
/** Ids of Slack; the history API does not accept names. */
export const channelId = z.string().regex(/^[CGDUW][A-Z0-9]{1,20}$/);
export const threadTs = z.string().regex(/^\d{1,12}\.\d{1,9}$/);
export const name = z.string().min(1).max(200);
/** The format of `secret-box.ts`; plain secrets cannot enter a command or an event. */
export const sealed = z
  .string()
  .regex(/^sealed\.v1\.[A-Za-z0-9_-]{1,32}\.[\w-]{16}\.[\w-]{22,4000}$/);
export const data = z
  .record(z.string(), z.json())
  .refine(
    (value) => Buffer.byteLength(JSON.stringify(value)) <= slackRequestLimits.dataBytesMax,
    `at most ${slackRequestLimits.dataBytesMax} bytes`,
  );
export const blocks = z
  .array(z.record(z.string(), z.json()))
  .min(1)
  .max(slackRequestLimits.blocksMax);
/** A normalized error of Slack or of this module: `channel_not_found`, `template-data-missing`. */
export const failureCode = z.string().regex(/^[a-z][a-z0-9_-]{0,99}$/);
export const nothing = z.object({});
