export { openMemory, type MemoryEngine } from './open-memory.ts';
