// The subcommands of avsg_llama.
#pragma once

#include "arguments.hpp"

// Decodes the same text with and without AVSG and compares the logits. Returns the exit status.
int compare(Arguments arguments);

// Records which ids an indexer selects. Returns the exit status.
int record(Arguments arguments);

// Continues a conversation that earlier processes kept in a folder, and keeps it. Returns the exit status.
int session(Arguments arguments);

// Times a token with all rows resident, with every selected row copied, with AVSG and, with rows in a file, with a mapped
// file. Returns the exit status.
int compare_settings(Arguments arguments);
