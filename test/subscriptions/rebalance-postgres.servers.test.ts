import { rebalanceCases } from './rebalance-cases.ts';
import { openPostgresRig } from './open-postgres-rig.ts';

rebalanceCases('postgres', openPostgresRig);
