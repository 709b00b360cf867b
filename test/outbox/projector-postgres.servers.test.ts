import type { ClientBase } from 'pg';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { projectorCases } from './projector-cases.ts';

projectorCases<ClientBase>('postgres', async () => openPostgres((await sharedPostgres()).url));
