// What a deployment says of its topics: the field `notify` of its configuration.

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

export type TopicPermission = 'read-write' | 'read-only' | 'write-only' | 'deny';

export interface AccessRule {
  /** Absent, or `*`: everybody, those without credentials among them. */
  readonly user?: string;
  /** A topic, or a pattern in which `*` is any number of characters. */
  readonly topic: string;
  readonly permission: TopicPermission;
}

export interface NotifyUserSettings {
  readonly name: string;
  /** By `hashNotifyPassword`. */
  readonly passwordHash: string;
  /** Admins may do everything. Default: user. */
  readonly role?: 'admin' | 'user';
}

export interface NotifyTokenSettings {
  /** `tk_` and 29 letters, digits, `-` or `_`. */
  readonly token: string;
  readonly user: string;
  readonly label?: string;
}

export interface NamedTemplate {
  readonly title?: string;
  readonly message?: string;
  readonly priority?: string;
}

export interface NotifyLimits {
  readonly requestsBurst: number;
  readonly requestsReplenishMs: number;
  /** In a day, of the clock's own (UTC). */
  readonly messagesPerDay: number;
  readonly emailsBurst: number;
  readonly emailsReplenishMs: number;
  readonly subscriptionsMax: number;
  readonly newTopicsBurst: number;
  readonly newTopicsReplenishMs: number;
  readonly topicsMax: number;
  readonly authFailuresBurst: number;
  readonly authFailuresReplenishMs: number;
  readonly attachmentBytesMax: number;
  readonly attachmentBytesPerVisitor: number;
  readonly attachmentBytesTotal: number;
  readonly attachmentBytesPerDay: number;
  readonly attachmentExpiryMs: number;
  readonly messageBytesMax: number;
  readonly messageExpiryMs: number;
  readonly delayMsMin: number;
  readonly delayMsMax: number;
  readonly keepaliveMs: number;
}
