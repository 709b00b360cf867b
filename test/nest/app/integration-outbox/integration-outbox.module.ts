// Section 14 of the outbox document, with its names. The variables of section 9 configure it.

import { Module, type DynamicModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { MillraceModule } from 'millrace/nest';
import { databaseUrl, queuePrefix } from '../outbox-environment.ts';
import { EsdbToOutboxProjector } from './application/esdb-to-outbox.projector.ts';
import { PaymentEventMapper } from './application/integration-event.mapper.ts';
import { OutboxDispatcherService } from './application/outbox-dispatcher.service.ts';
import { KafkaPaymentsWorker } from './application/workers/kafka-payments.worker.ts';
import { OutboxRepository } from './domain/outbox.repository.ts';
import { IntegrationOutboxEntity } from './infrastructure/entities/integration-outbox.entity.ts';
import { TypeormOutboxRepository } from './infrastructure/outbox.repository.typeorm.ts';
import { QueueRouter } from './infrastructure/queue-router.ts';
import { IntegrationOutboxController } from './integration-outbox.controller.ts';

const parts = [
  { provide: OutboxRepository, useClass: TypeormOutboxRepository },
  QueueRouter,
  KafkaPaymentsWorker,
  PaymentEventMapper,
  EsdbToOutboxProjector,
];

@Module({ providers: parts, exports: parts })
class OutboxPartsModule {}

@Module({})
export class IntegrationOutboxModule {
  static forRoot(): DynamicModule {
    return {
      module: IntegrationOutboxModule,
      imports: [
        // Listed before TypeORM: shutdown in list order would close TypeORM's pool too early.
        MillraceModule.forRootAsync({
          imports: [OutboxPartsModule],
          inject: [OutboxRepository, QueueRouter, EsdbToOutboxProjector],
          useFactory: (
            ledger: OutboxRepository,
            router: QueueRouter,
            projector: EsdbToOutboxProjector,
          ) => ({
            outbox: {
              ledger,
              projectors: [projector.definition()],
              destinations: router.destinations(),
              queue: { prefix: queuePrefix() },
              dispatcher: {
                leaseMs: 2_000,
                schedule: { initialMs: 20, factor: 2, capMs: 500, jitterMs: 10 },
              },
            },
            // A short lease, so that the test need not wait for the one of a killed process.
            running: { leaseMs: 2_000 },
            health: { countEveryMs: 1 },
          }),
        }),
        TypeOrmModule.forRoot({
          type: 'postgres',
          url: databaseUrl(),
          poolSize: 8,
          entities: [IntegrationOutboxEntity],
        }),
      ],
      controllers: [IntegrationOutboxController],
      providers: [OutboxDispatcherService],
    };
  }
}
