// `sotto completion`: what a shell needs to complete the program's words.
#include <array>
#include <memory>
#include <string>

#include <sotto/base/names.h>
#include <sotto/console/output.h>

#include "commands.h"
#include "manual/completion_scripts.h"

namespace sotto::cli {
namespace {

int run_completion(const CLI::App& program, const std::string& shell) {
  struct Shell {
    const char* name;
    std::string (*script)(const CommandWords&);
  };
  constexpr std::array<Shell, 3> kShells = {
      {{"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}}};
  for (const Shell& one : kShells) {
    if (shell == one.name) {
      console::print_text(one.script(words_of(program)));
      return console::kDone;
    }
  }
  refuse_unknown("shell", shell, names_of(kShells));
}

}  // namespace

console::Command add_completion_command(CLI::App& program) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      program.add_subcommand("completion", "Writes a script that completes words in a shell");
  command->add_option("shell", *shell, "The shell")->type_name("bash|zsh|fish")->required();
  command->footer(
      "Examples:\n"
      "  source <(sotto completion bash)\n"
      "  sotto completion zsh > ~/.zfunc/_sotto          with ~/.zfunc in $fpath\n"
      "  sotto completion fish > ~/.config/fish/completions/sotto.fish");
  return {command, [&program, shell] { return run_completion(program, *shell); }};
}

}  // namespace sotto::cli
