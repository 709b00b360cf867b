// What names and texts look like wherever they come in.

import { z } from 'zod';

/** Of read models in Redis, and of the streams that are not named by the document. */
export const boundedContext = 'notification-slack';

export const slackRequestLimits = {
  /** Slack cuts off what is longer. */
  textCharsMax: 40_000,
  blocksMax: 50,
  dataBytesMax: 100_000,
  delayMsMax: 30 * 86_400_000,
  priorityMax: 2_097_152,
} as const;

/** Of a workspace, a template, a channel, an app: what a stream may be called. */
export const code = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/);
/** As Slack gives them out: names are not found in histories. */
export const channelId = z.string().regex(/^[CGDUW][A-Z0-9]{1,20}$/);
export const threadTs = z.string().regex(/^\d{1,12}\.\d{1,9}$/);
export const name = z.string().min(1).max(200);
/** As `secret-box.ts` writes it. What is no sealed text gets into no command, and so into no event. */
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
/** An error of Slack, normalised, or one of ours: `channel_not_found`, `template-data-missing`. */
export const failureCode = z.string().regex(/^[a-z][a-z0-9_-]{0,99}$/);
export const nothing = z.object({});
