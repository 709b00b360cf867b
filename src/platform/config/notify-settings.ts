// The field `notify` of the configuration: settings of topics.

import type { AccessRule, TopicPermission } from '../../topics/users/access-rules.ts';
import type { NotifyTokenSettings, NotifyUserSettings } from '../../topics/users/notify-users.ts';
import type { NamedTemplate } from '../../topics/templates/named-templates.ts';
import type { NotifyLimits } from '../../topics/visitor-limits.ts';

export interface NotifySettings {
  readonly users?: readonly NotifyUserSettings[] | undefined;
  readonly tokens?: readonly NotifyTokenSettings[] | undefined;
  readonly access?: readonly AccessRule[] | undefined;
  /**
   * The access to topics that no access rule matches. Default: deny if other machines can reach the server (by its
   * address, `behindProxy`, `baseUrl` or `server.hosts`), else read-write.
   */
  readonly defaultAccess?: TopicPermission | undefined;
  /** Where clients reach the server; attachments and Matrix need it. Default: where it listens. */
  readonly baseUrl?: string | undefined;
  /** Default: `.millrace/attachments`; false: files are rejected. */
  readonly attachments?: string | false | undefined;
  readonly limits?: Partial<NotifyLimits> | undefined;
  /** Addresses whose requests and messages do not count against limits. */
  readonly exemptHosts?: readonly string[] | undefined;
  /** True: the address of a client is the last one of `X-Forwarded-For`. */
  readonly behindProxy?: boolean | undefined;
  readonly templates?: Readonly<Record<string, NamedTemplate>> | undefined;
  /** Names that cannot be topics, in addition to those of ntfy and of the product. */
  readonly reservedTopics?: readonly string[] | undefined;
  /** The server from which the iPhone app receives pushes, such as https://ntfy.sh. */
  readonly upstreamUrl?: string | undefined;
  readonly upstreamToken?: string | undefined;
}
