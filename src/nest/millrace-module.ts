// The Nest module: opens the engines, provides them, and runs the handlers of the application.

import {
  type DynamicModule,
  type FactoryProvider,
  Module,
  type ModuleMetadata,
  type Provider,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, MetadataScanner } from '@nestjs/core';
import { MillraceHealthIndicator } from './millrace-health-indicator.ts';
import { MillraceMetrics } from './millrace-metrics.ts';
import type { MillraceModuleOptions } from './millrace-options.ts';
import { MillraceRuntime } from './millrace-runtime.ts';
import { nestLogger } from './nest-logger.ts';
import { OutboxRepository } from './outbox-repository.ts';

/**
 * The `EventStore` of the module; undefined if it has none.
 *
 * @example
 * import { Inject, Injectable } from '@nestjs/common';
 * import { EVENT_STORE } from 'millrace/nest';
 * import type { EventStore } from 'millrace/store';
 *
 * @Injectable()
 * export class Ledgers {
 *   constructor(@Inject(EVENT_STORE) readonly store: EventStore) {}
 * }
 */
export const EVENT_STORE = Symbol.for('millrace:event-store');

/**
 * The `OutboxLedger` of the module, also provided as `OutboxRepository`; undefined if the module has none.
 *
 * @example
 * import { Inject, Injectable } from '@nestjs/common';
 * import { OUTBOX_LEDGER } from 'millrace/nest';
 * import type { OutboxLedger } from 'millrace/outbox';
 *
 * @Injectable()
 * export class Replays {
 *   constructor(@Inject(OUTBOX_LEDGER) private readonly ledger: OutboxLedger) {}
 *
 *   all(): Promise<number> {
 *     return this.ledger.replay({});
 *   }
 * }
 */
export const OUTBOX_LEDGER = Symbol.for('millrace:outbox-ledger');

/**
 * The `OutboxDispatcher` of the module, or its `QueueDispatcher` with the option `outbox.queue`; undefined if this
 * process delivers nothing. Both have `tick(limit)`.
 *
 * @example
 * import { Inject, Injectable } from '@nestjs/common';
 * import { OUTBOX_DISPATCHER } from 'millrace/nest';
 * import type { OutboxDispatcher } from 'millrace/outbox';
 *
 * @Injectable()
 * export class Gauge {
 *   constructor(@Inject(OUTBOX_DISPATCHER) readonly dispatcher: OutboxDispatcher) {}
 * }
 */
export const OUTBOX_DISPATCHER = Symbol.for('millrace:outbox-dispatcher');

/**
 * The logger of the application documents; equal to `@Inject('ILogger')`.
 *
 * @example
 * import { Inject, Injectable } from '@nestjs/common';
 * import { ILOGGER, type ILogger } from 'millrace/nest';
 *
 * @Injectable()
 * export class Reports {
 *   constructor(@Inject(ILOGGER) private readonly logger: ILogger) {}
 *
 *   done(correlationId: string): void {
 *     this.logger.info({ correlationId, operation: 'REPORT', phase: 'SUCCESS' }, 'report written');
 *   }
 * }
 */
export const ILOGGER = 'ILogger';

const MILLRACE_OPTIONS = Symbol.for('millrace:options');

interface GlobalOption {
  /** Makes the providers available in all modules. Default: true. */
  readonly isGlobal?: boolean | undefined;
}

export interface MillraceModuleAsyncOptions
  extends GlobalOption, Pick<ModuleMetadata, 'imports'>, Pick<FactoryProvider, 'inject'> {
  readonly useFactory: FactoryProvider<
    MillraceModuleOptions | Promise<MillraceModuleOptions>
  >['useFactory'];
}

/**
 * Integrates Millrace into a Nest application: `EVENT_STORE`, `OutboxRepository`, handlers and health. It starts with
 * the application and stops with `app.close()` or, after `app.enableShutdownHooks()`, by a signal.
 *
 * @example
 * import { Module } from '@nestjs/common';
 * import { webhookDestination } from 'millrace/destinations/webhook';
 * import { MillraceModule } from 'millrace/nest';
 *
 * const webhook = webhookDestination({
 *   endpoint: { id: 'partner-x', url: 'https://partner.example/hook', secrets: ['whsec_…'] },
 * });
 *
 * @Module({
 *   imports: [
 *     MillraceModule.forRoot({
 *       service: 'shop',
 *       bc: 'shop',
 *       store: 'sqlite:.millrace/events.db',
 *       outbox: { destinations: { webhook } },
 *     }),
 *   ],
 * })
 * export class AppModule {}
 */
export class MillraceModule {
  static forRoot(options: MillraceModuleOptions & GlobalOption): DynamicModule {
    const { isGlobal, ...rest } = options;
    return moduleOf({ provide: MILLRACE_OPTIONS, useValue: rest }, { isGlobal });
  }

  static forRootAsync(options: MillraceModuleAsyncOptions): DynamicModule {
    const { isGlobal, imports = [], inject = [], useFactory } = options;
    return moduleOf({ provide: MILLRACE_OPTIONS, inject, useFactory }, { isGlobal, imports });
  }
}

/**
 * The module is not global: Nest starts global modules first and stops them last, but this one must start after TypeORM's pool and
 * stop before it.
 */
class MillraceRuntimeModule {}

/** Separate, so that a factory can inject an `OutboxRepository` of the application, which the runtime module also provides. */
class MillraceOptionsModule {}

Module({})(MillraceModule);
Module({})(MillraceRuntimeModule);
Module({})(MillraceOptionsModule);

const provided: readonly Provider[] = [
  {
    provide: MillraceRuntime,
    inject: [MILLRACE_OPTIONS, DiscoveryService, MetadataScanner],
    useFactory: (
      options: MillraceModuleOptions,
      discovery: DiscoveryService,
      scanner: MetadataScanner,
    ) => MillraceRuntime.open(options, { discovery, scanner }),
  },
  MillraceHealthIndicator,
  MillraceMetrics,
  fromRuntime(EVENT_STORE, ({ store }) => store),
  fromRuntime(OUTBOX_LEDGER, ({ ledger }) => ledger),
  fromRuntime(OutboxRepository, ({ ledger }) => ledger),
  fromRuntime(OUTBOX_DISPATCHER, ({ dispatcher }) => dispatcher),
  { provide: ILOGGER, useFactory: () => nestLogger() },
];

function fromRuntime(
  provide: FactoryProvider['provide'],
  useFactory: (runtime: MillraceRuntime) => unknown,
): Provider {
  return { provide, inject: [MillraceRuntime], useFactory };
}

function moduleOf(
  options: Provider,
  more: {
    readonly isGlobal: boolean | undefined;
    readonly imports?: NonNullable<ModuleMetadata['imports']> | undefined;
  },
): DynamicModule {
  const given: DynamicModule = {
    module: MillraceOptionsModule,
    imports: more.imports ?? [],
    providers: [options],
    exports: [MILLRACE_OPTIONS],
  };
  const runtime: DynamicModule = {
    module: MillraceRuntimeModule,
    imports: [DiscoveryModule, given],
    providers: [...provided],
    exports: [...provided],
  };
  return {
    module: MillraceModule,
    global: more.isGlobal ?? true,
    imports: [runtime],
    exports: [runtime],
  };
}
