export type { HostResolver } from './address-guard.ts';
export type { WebhookFormat } from './content.ts';
export {
  wantsEvent,
  webhookDestination,
  webhookLimits,
  type WebhookEndpoint,
  type WebhookOptions,
} from './destination.ts';
export { createWebhookKeyPair, type WebhookKeyPair } from './key.ts';
export {
  signatureLimits,
  signWebhook,
  verifyWebhook,
  type SignedContent,
  type VerifiedWebhook,
  type VerifyWebhook,
} from './signature.ts';
