export type { HostResolver } from './address-guard.ts';
export type { WebhookFormat } from './webhook-content.ts';
export { webhookDestination, webhookLimits, type WebhookOptions } from './webhook-destination.ts';
export { wantsEvent, type WebhookEndpoint } from './webhook-endpoint.ts';
export { createWebhookKeyPair, type WebhookKeyPair } from './webhook-key.ts';
export {
  signatureLimits,
  signWebhook,
  verifyWebhook,
  type SignedContent,
  type VerifiedWebhook,
  type VerifyWebhook,
} from './webhook-signature.ts';
