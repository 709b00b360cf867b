// The topics of a deployment: the field `notify` of its configuration.

import type { AccessRule, TopicPermission } from '../../notify/access-rules.ts';
import type { NotifyTokenSettings, NotifyUserSettings } from '../../notify/notify-users.ts';
import type { NamedTemplate } from '../../notify/template-files.ts';
import type { TopicDurability } from '../../notify/topic-bus.ts';
import type { NotifyLimits } from '../../notify/visitor-limits.ts';

export interface NotifySettings {
  readonly users?: readonly NotifyUserSettings[];
  readonly tokens?: readonly NotifyTokenSettings[];
  readonly access?: readonly AccessRule[];
  /** For topics without a matching rule. Default: read-write on localhost, else deny. */
  readonly defaultAccess?: TopicPermission;
  /** The public URL; attachments and Matrix need it. Default: the listen address. */
  readonly baseUrl?: string;
  /** Default: `.millrace/attachments`; false: files are rejected. */
  readonly attachments?: string | false;
  readonly limits?: Partial<NotifyLimits>;
  /**
   * `relaxed`: readers get a message when it is stored, before it is synced to disk. `readers-first`: before it is
   * stored, like ntfy; only for a bus in a file to which no other process publishes topics. Default: `synced`. In all
   * cases a publish is acknowledged when its message is synced to disk.
   */
  readonly durability?: TopicDurability;
  /** Addresses without rate limits. */
  readonly exemptHosts?: readonly string[];
  /** Client addresses come from the last proxy (`X-Forwarded-For`). */
  readonly behindProxy?: boolean;
  readonly templates?: Readonly<Record<string, NamedTemplate>>;
  /** Names that are not allowed as topics, in addition to those of ntfy and Millrace. */
  readonly reservedTopics?: readonly string[];
  /** Wakes iPhones: the server that the iOS app is connected to, such as https://ntfy.sh. */
  readonly upstreamUrl?: string;
  readonly upstreamToken?: string;
}
