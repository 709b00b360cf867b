// The module: opens what the application names, provides it, finds its handlers, runs them, and ends with it.

import {
  Module,
  type DynamicModule,
  type FactoryProvider,
  type ModuleMetadata,
  type Provider,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, MetadataScanner } from '@nestjs/core';
import { MillraceHealthIndicator } from './millrace-health-indicator.ts';
import type { MillraceModuleOptions } from './millrace-options.ts';
import { MillraceRuntime } from './millrace-runtime.ts';
import {
  EVENT_STORE,
  ILOGGER,
  MILLRACE_OPTIONS,
  OUTBOX_DISPATCHER,
  OUTBOX_LEDGER,
} from './millrace-tokens.ts';
import { nestLogger } from './nest-logger.ts';
import { OutboxRepository } from './outbox-repository.ts';

interface GlobalOption {
  /** Its providers can be injected in all modules. Default: true. */
  readonly isGlobal?: boolean;
}

export interface MillraceModuleAsyncOptions
  extends GlobalOption, Pick<ModuleMetadata, 'imports'>, Pick<FactoryProvider, 'inject'> {
  readonly useFactory: FactoryProvider<
    MillraceModuleOptions | Promise<MillraceModuleOptions>
  >['useFactory'];
}

/**
 * Wires Millrace into a Nest application: `EVENT_STORE`, `OutboxRepository`, handlers and health. It starts when
 * the application does, and ends with `app.close()` or, with `app.enableShutdownHooks()`, by a signal.
 *
 * @example
 * import { Module } from '@nestjs/common';
 * import { webhookDestination } from 'millrace/adapters/webhook';
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
 * Never global itself: Nest ends global modules last and starts them first, and what runs here must end before
 * TypeORM's pool does and start after it.
 */
class MillraceRuntimeModule {}

Module({})(MillraceModule);
Module({})(MillraceRuntimeModule);

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
    readonly imports?: NonNullable<ModuleMetadata['imports']>;
  },
): DynamicModule {
  const runtime: DynamicModule = {
    module: MillraceRuntimeModule,
    imports: [DiscoveryModule, ...(more.imports ?? [])],
    providers: [options, ...provided],
    exports: [...provided],
  };
  return {
    module: MillraceModule,
    global: more.isGlobal ?? true,
    imports: [runtime],
    exports: [runtime],
  };
}
