// `sotto status`: how the site that runs here stands.
#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/json_text.h>
#include <sotto/base/text.h>
#include <sotto/console/output.h>
#include <sotto/observe/monitor.h>
#include <sotto/study/site/site_file.h>
#include <sotto/study/toml/reader.h>

#include "commands.h"
#include "site_words.h"

namespace sotto::cli {
namespace {

constexpr const char* kStatusExamples =
    "Examples:\n"
    "  sotto status site.toml\n"
    "  sotto status 9464                the monitor of a program's site, or of a node that comes "
    "and goes\n"
    "  sotto status site.toml --json -\n"
    "Exits with 1 when no site answers.";

constexpr const char* kNoSite = "what answers is no site of sotto's";

struct StatusOptions {
  console::CommonOptions common;
  std::string site;
};

/// What a monitor answers, where it has a name; whoever listens at the address may answer anything.
Json parse_status(const std::string& answer) {
  constexpr std::size_t kDeepest = 16;
  try {
    Json status = parse_json<Json>(answer, kDeepest);
    if (status.is_object() && status.contains("name") && status["name"].is_string()) {
      return status;
    }
  } catch (const Error&) {
    // It is no JSON, or none of a site's.
  }
  throw std::runtime_error(kNoSite);
}

/// Where to ask, and the name of the site that is to answer; empty: any.
struct Asked {
  MonitorAddress monitor;
  std::string name;
};

/// The monitor of the site that a file describes, whose data are of no concern here.
Asked asked_of_file(const std::string& path) {
  const toml::table file = study::read_toml("site", path);
  study::TomlReader in(path, "", file);
  const SiteSettings site = study::read_site(in);
  const auto monitor = in.parsed("monitor", parse_monitor_address);
  if (!monitor) {
    refuse("site", path,
           "it has no monitor to ask; put the line monitor = \"127.0.0.1:9100\" above [training], "
           "with a port of its own for each site of this host, and start the site again");
  }
  return {.monitor = *monitor, .name = site.names.name};
}

Asked asked_of_address(const std::string& text) {
  try {
    return {.monitor = parse_monitor_address(text), .name = ""};
  } catch (const Error& error) {
    refuse("site", text,
           fmt::format("there is no such file, and as the address of a monitor {}", error.what()));
  }
}

int run(const StatusOptions& options) {
  std::error_code code;  // a folder that cannot be looked into has no such file
  const bool file = std::string_view(options.site).ends_with(".toml") ||
                    std::filesystem::exists(options.site, code);
  const Asked asked = file ? asked_of_file(options.site) : asked_of_address(options.site);
  const console::Output output(options.common);
  const Json status = parse_status(ask_monitor(asked.monitor, "/status"));
  if (const std::string& name = status.at("name").get_ref<const std::string&>();
      !asked.name.empty() && name != asked.name) {
    throw std::runtime_error(
        fmt::format("at this site's monitor another one answers: {}", printable(excerpt(name))));
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  try {
    print_site(output, status, std::chrono::duration<double>(now).count());
  } catch (const Json::exception&) {
    throw std::runtime_error(kNoSite);
  }
  output.json(status);
  return console::kDone;
}

}  // namespace

console::Command add_status_command(CLI::App& program) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = program.add_subcommand("status", "Shows how a site here stands");
  command->add_option("SITE.toml", options->site, "The site's file, or where its monitor listens")
      ->type_name("FILE.toml|[HOST:]PORT")
      ->required();
  return completed(*command, options, kStatusExamples, run);
}

}  // namespace sotto::cli
