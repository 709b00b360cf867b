import { Global, Module, type DynamicModule } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { TypeOrmModule } from '@nestjs/typeorm';
import { webhookDestination } from 'millrace/destinations/webhook';
import { MillraceModule, type MillraceModuleOptions } from 'millrace/nest';
import {
  IntegrationOutboxEntity,
  openTypeorm,
  TypeormOutboxRepository,
} from 'millrace/nest/typeorm';
import { DataSource } from 'typeorm';
import { APP_SETTINGS, type AppSettings } from './app-settings.ts';
import { HealthController } from './health.controller.ts';
import { OrderEntity, OrdersController } from './orders.controller.ts';
import { PartnerMessages, PaymentMailer } from './payment-handlers.ts';
import { PaymentsController } from './payments.controller.ts';

@Global()
@Module({})
class SettingsModule {}

@Module({ controllers: [PaymentsController], providers: [PaymentMailer, PartnerMessages] })
class PaymentsModule {}

@Module({
  imports: [TypeOrmModule.forFeature([OrderEntity, IntegrationOutboxEntity])],
  controllers: [OrdersController],
})
class OrdersModule {}

@Module({})
export class AppModule {
  static with(settings: AppSettings): DynamicModule {
    const { database } = settings;
    const provided = [{ provide: APP_SETTINGS, useValue: settings }];
    return {
      module: AppModule,
      imports: [
        { module: SettingsModule, providers: provided, exports: provided },
        // Listed before TypeORM: shutdown in list order would close TypeORM's pool too early.
        MillraceModule.forRootAsync({
          inject: database === undefined ? [APP_SETTINGS] : [APP_SETTINGS, DataSource],
          useFactory: millraceOptions,
        }),
        ...(database === undefined ? [] : [typeorm(database), OrdersModule]),
        PaymentsModule,
        TerminusModule,
      ],
      controllers: [HealthController],
    };
  }
}

async function millraceOptions(
  settings: AppSettings,
  dataSource?: DataSource,
): Promise<MillraceModuleOptions> {
  const webhook = webhookDestination({
    endpoint: {
      id: 'partner',
      url: `${settings.receiver}/hook`,
      secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    },
    allowAddresses: ['127.0.0.1/32'],
    allowHttp: true,
  });
  return {
    service: 'paymenthub',
    bc: 'paymenthub',
    store: dataSource === undefined ? settings.store : await openTypeorm(dataSource),
    outbox: {
      ...(dataSource && { ledger: new TypeormOutboxRepository(dataSource) }),
      destinations: { webhook },
      dispatcher: {
        leaseMs: 5_000,
        schedule: { initialMs: 20, factor: 2, capMs: 500, jitterMs: 10 },
      },
    },
    health: { countEveryMs: 1 },
  };
}

function typeorm(url: string): DynamicModule {
  return TypeOrmModule.forRoot({
    type: 'postgres',
    url,
    poolSize: 8,
    entities: [OrderEntity, IntegrationOutboxEntity],
    synchronize: true,
  });
}
