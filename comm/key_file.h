// A node's key pair in a file that only its owner can read.
//
//   # sotto key of NAME: whoever has the line below it is that node
//   public Z85
//   secret Z85
//
// Thread-safe for different paths. Nothing secret ever stands in a message.
#pragma once

#include <string>
#include <string_view>

#include <sotto/comm/security.h>

namespace sotto {

/// Reads a key file. Throws Error, with file and line, when it is not there, is no plain file of
/// this user's, can be read or written by others, is too long, breaks the format, or holds two keys
/// that are no pair.
KeyPair read_key_file(const std::string& path);

/// What such a file says. Throws Error, with `path` and line, as read_key_file does.
KeyPair parse_key_file(const std::string& path, std::string_view text);

/// Writes a new key file, mode 0600, and syncs it. `name` is for people and goes into the first
/// line. Throws Error when the file is there already or cannot be written; then nothing is left of
/// it.
void write_key_file(const std::string& path, std::string_view name, const KeyPair& keys);

}  // namespace sotto
