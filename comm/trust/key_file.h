// A node's key pair in a file that only its owner can read.
//
//   # sotto key of NAME: whoever has the line below it is that node
//   public Z85
//   secret Z85
//
// Thread-safe for different paths. Messages never contain a secret.
#pragma once

#include <string>
#include <string_view>

#include <sotto/comm/trust/keys.h>

namespace sotto {

/// Reads a key file. Throws Error, with file and line, when the file does not exist, is not a plain
/// file of this user, can be read or written by others, is too long, breaks the format, or holds
/// two keys that are not a pair.
KeyPair read_key_file(const std::string& path);

/// Parses the text of a key file. Throws Error, with `path` and line, as read_key_file does.
KeyPair parse_key_file(const std::string& path, std::string_view text);

/// Writes a new key file, mode 0600, and syncs it. `name` is for people and goes into the first
/// line. Throws Error, and leaves no partial file, when the file exists already or cannot be
/// written.
void write_key_file(const std::string& path, std::string_view name, const KeyPair& keys);

}  // namespace sotto
