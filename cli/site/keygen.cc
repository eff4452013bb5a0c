// `sotto keygen`: a node's key pair.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/trust/key_file.h>
#include <sotto/comm/trust/keys.h>
#include <sotto/console/output.h>

#include "commands.h"

namespace sotto::cli {
namespace {

constexpr const char* kKeygenExamples =
    "Examples:\n"
    "  sotto keygen hospital      makes hospital.key, which stays here, and hospital.pub, which "
    "the\n"
    "                             other sites need\n"
    "  sotto train --key hospital.key --peers peers.csv";

struct KeygenOptions {
  console::CommonOptions common;
  std::string name = "sotto";
};

void write_public_key(const std::string& path, const std::string& key) {
  std::ofstream file(path, std::ios::binary);
  file << key << '\n';
  file.close();
  if (!file) {
    throw std::runtime_error(fmt::format("{} could not be written", path));
  }
}

int run(const KeygenOptions& options) {
  const std::filesystem::path base(options.name);
  const std::string name = base.filename().string();
  if (name.empty()) {
    refuse("name", options.name, "it must end in a name, not in a slash");
  }
  const console::Output output(options.common);
  const std::string secret_file = options.name + ".key";
  const std::string public_file = options.name + ".pub";
  if (std::filesystem::exists(public_file)) {
    refuse("name", options.name, fmt::format("{} is there already", public_file));
  }
  const KeyPair keys = make_key_pair();
  write_key_file(secret_file, name, keys);
  write_public_key(public_file, keys.public_key.text());
  output.line(keys.public_key.text());
  output.json({{"sotto", SOTTO_VERSION},
               {"name", printable(name)},
               {"secret_file", printable(secret_file)},
               {"public_file", printable(public_file)},
               {"public_key", keys.public_key.text()}});
  return console::kDone;
}

}  // namespace

console::Command add_keygen_command(CLI::App& program) {
  auto options = std::make_shared<KeygenOptions>();
  CLI::App* command = program.add_subcommand("keygen", "Makes a node's key pair");
  command
      ->add_option("NAME", options->name,
                   "The secret key goes to NAME.key, which only you can read, the public one to "
                   "NAME.pub and to standard output")
      ->type_name("NAME")
      ->capture_default_str();
  return completed(*command, options, kKeygenExamples, run);
}

}  // namespace sotto::cli
