// What a deployment says of its topics: the field `notify` of its configuration.

import type { AccessRule, TopicPermission } from '../../notify/access-rules.ts';
import type { NotifyTokenSettings, NotifyUserSettings } from '../../notify/notify-users.ts';
import type { NamedTemplate } from '../../notify/template-files.ts';
import type { TopicDurability } from '../../notify/topic-bus.ts';
import type { NotifyLimits } from '../../notify/visitor-limits.ts';

export interface NotifySettings {
  readonly users?: readonly NotifyUserSettings[];
  readonly tokens?: readonly NotifyTokenSettings[];
  readonly access?: readonly AccessRule[];
  /** For topics that no rule is about. Default: read-write on this machine only, else deny. */
  readonly defaultAccess?: TopicPermission;
  /** Where clients reach it; attachments and Matrix need it. Default: where it listens. */
  readonly baseUrl?: string;
  /** Default: `.millrace/attachments`; false: files are refused. */
  readonly attachments?: string | false;
  readonly limits?: Partial<NotifyLimits>;
  /**
   * `relaxed`: readers get a message once it is stored, before it is on the disk. `readers-first`: before it is
   * stored, as ntfy has it; for a bus in a file that no other process publishes topics to. Default: `synced`.
   * Whichever it is, a publish is answered when its message is on the disk.
   */
  readonly durability?: TopicDurability;
  /** Addresses whose requests and messages are not counted. */
  readonly exemptHosts?: readonly string[];
  /** Addresses are what the last proxy says (`X-Forwarded-For`). */
  readonly behindProxy?: boolean;
  readonly templates?: Readonly<Record<string, NamedTemplate>>;
  /** Names that may not be topics, beside those of ntfy and of the product. */
  readonly reservedTopics?: readonly string[];
  /** Wakes iPhones: the server that its app hears, such as https://ntfy.sh. */
  readonly upstreamUrl?: string;
  readonly upstreamToken?: string;
}
