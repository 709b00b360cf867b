// FerretDB as a program: its embeddable package with a small main function, built from the Go module
// proxy. (Its own command cannot be built from there, because it needs a file that releases generate.)

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const version = 'v1.24.0';

const module = `module millrace/engines/ferretdb

go 1.22

require github.com/FerretDB/FerretDB ${version}
`;

const program = `package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

// Usage: ferretdb <host:port> <folder/>
func main() {
	// FerretDB reads every document for every query; fewer garbage collections save a third of the time.
	debug.SetGCPercent(800)
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: os.Args[1]},
		Logger:    logger,
		Handler:   "sqlite",
		SQLiteURL: "file:" + os.Args[2],
	})
	if err != nil {
		logger.Error(err.Error())
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := server.Run(ctx); err != nil {
		logger.Error(err.Error())
		os.Exit(1)
	}
}
`;

/** Builds the program unless it is up to date; the first build takes minutes. */
export async function fetchFerretdb(folder: string): Promise<string> {
  const home = join(folder, `ferretdb-${version}`);
  const path = join(home, 'ferretdb');
  const source = join(home, 'main.go');
  const isBuilt = existsSync(path) && existsSync(source);
  if (isBuilt && readFileSync(source, 'utf8') === program) return path;
  mkdirSync(home, { recursive: true });
  rmSync(path, { force: true });
  writeFileSync(join(home, 'go.mod'), module);
  writeFileSync(source, program);
  console.log(`building FerretDB ${version} (go build; the first build takes minutes)…`);
  const started = `${path}.${process.pid}`;
  await go(home, ['build', '-mod=mod', '-buildvcs=false', '-trimpath', '-o', started, '.']);
  // An interrupted build must not be used as a program.
  renameSync(started, path);
  return path;
}

function go(cwd: string, flags: readonly string[]): Promise<void> {
  const env = { ...process.env, GOTOOLCHAIN: 'local', CGO_ENABLED: '0' };
  return new Promise((resolve, reject) => {
    const child = spawn('go', flags, { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] });
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'ENOENT'
          ? new Error('go is not on the PATH (https://go.dev/dl)')
          : new Error('go cannot be run', { cause: error }),
      ),
    );
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(reasonOf(errors)));
    });
  });
}

const unreachable = /dial tcp|no such host|lookup .* disabled|timeout|TLS handshake|unexpected EOF/;

/** Returns the last lines, which name the error; the earlier ones only list downloads. */
function reasonOf(errors: string): string {
  const lines = errors.trim().split('\n').slice(-3).join('\n  ');
  return unreachable.test(lines)
    ? `the Go module proxy (go env GOPROXY) is not reached:\n  ${lines}`
    : `go build failed:\n  ${lines}`;
}
