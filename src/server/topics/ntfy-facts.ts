// What the server reports about itself and about an account.

import { createHash } from 'node:crypto';
import type { NotifyLimits } from '../../topics/visitor-limits.ts';
import type { Topics } from '../../topics/topics.ts';
import type { Visitor } from './ntfy-visitor.ts';

export function configOf(topics: Topics): Readonly<Record<string, unknown>> {
  const config = {
    base_url: '',
    app_root: '/',
    enable_login: false,
    require_login: false,
    enable_signup: false,
    enable_payments: false,
    enable_calls: false,
    enable_emails: topics.rules.hasEmail,
    enable_reset_password: false,
    enable_reservations: false,
    enable_web_push: false,
    billing_contact: '',
    web_push_public_key: '',
    disallowed_topics: topics.reserved,
  };
  const hash = createHash('sha256').update(JSON.stringify(config)).digest('hex');
  return { ...config, config_hash: hash };
}

export async function accountOf(
  topics: Topics,
  { name, user }: Visitor,
): Promise<Readonly<Record<string, unknown>>> {
  const { limits } = topics;
  const messages = topics.visitors.messagesToday(name);
  const owned = (await topics.attachments?.usage(name))?.owned ?? 0;
  const emails = emailsOf(limits);
  return {
    username: user?.name ?? '*',
    role: user?.role ?? 'anonymous',
    limits: {
      basis: 'ip',
      messages: limits.messagesPerDay,
      messages_expiry_duration: seconds(limits.messageExpiryMs),
      emails,
      calls: 0,
      reservations: 0,
      attachment_total_size: limits.attachmentBytesPerVisitor,
      attachment_file_size: limits.attachmentBytesMax,
      attachment_expiry_duration: seconds(limits.attachmentExpiryMs),
      attachment_bandwidth: limits.attachmentBytesPerDay,
    },
    stats: {
      messages,
      messages_remaining: Math.max(0, limits.messagesPerDay - messages),
      emails: 0,
      emails_remaining: emails,
      calls: 0,
      calls_remaining: 0,
      reservations: 0,
      reservations_remaining: 0,
      attachment_total_size: owned,
      attachment_total_size_remaining: Math.max(0, limits.attachmentBytesPerVisitor - owned),
    },
  };
}

/** Per day, as ntfy reports it. */
function emailsOf(limits: NotifyLimits): number {
  return Math.floor(86_400_000 / limits.emailsReplenishMs);
}

function seconds(ms: number): number {
  return Math.floor(ms / 1_000);
}
