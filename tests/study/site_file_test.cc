// A site's file as settings for a program with a model of its own.
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/study/site/site_file.h>
#include <sotto/study/train/train_options.h>

#include "support/scratch.h"

namespace sotto::test::site_file_test {

namespace {

constexpr const char* kNames =
    "sotto-site = 1\nname = \"bank\"\nkey = \"bank.key\"\npeers = \"/etc/peers.csv\"\n"
    "state = \"state\"\n";

class File {
 public:
  explicit File(const std::string& text) { std::ofstream(path()) << text; }
  std::string path() const { return (scratch_.path() / "site.toml").string(); }
  std::string folder() const { return scratch_.path().string(); }

 private:
  Scratch scratch_;
};

std::string refusal_of(const std::string& text) {
  const File file(text);
  try {
    (void)study::read_site_file(file.path());
  } catch (const Error& error) {
    return std::string(error.what()).substr(file.folder().size() + 1);
  }
  return "";
}

}  // namespace

TEST_CASE("a site's file says who the site is, how it steps and how it bears with others") {
  const File file(std::string(kNames) + R"(listen = "10.0.0.1:9000"
monitor = "127.0.0.1:9100"
observer = true
[training]
task = "csv:patients.csv"
model = "mlp:64"
batch = 16
algorithm = "choco:eta=0.2"
compressor = "sign"
lr = 0.25
communication-interval = 4
rounds = 9
[data]
scaling = "s.json"
[network]
timeout = "1500 ms"
patience = "2 min"
slack = 3
pull-most = 7.5
pull-fresh = 6
secure-sum = true
)");
  const SiteSettings settings = study::read_site_file(file.path());
  CHECK(settings.names.name == "bank");
  CHECK(settings.names.key == file.folder() + "/bank.key");
  CHECK(settings.names.peers == "/etc/peers.csv");
  CHECK(settings.state == file.folder() + "/state");
  CHECK(settings.names.listen == "10.0.0.1:9000");
  CHECK(settings.observer);
  CHECK(settings.outputs.monitor == "127.0.0.1:9100");
  CHECK(settings.outputs.audit.empty());
  CHECK(settings.training.algorithm == "choco:eta=0.2");
  CHECK(settings.training.compressor == "sign");
  CHECK(settings.training.lr == 0.25);
  CHECK(settings.training.communication_interval == 4);
  CHECK(settings.rounds == 9);
  CHECK(settings.timeout_s == 1.5);
  CHECK(settings.patience_s == 120);
  CHECK(settings.found_after_s == 30);
  CHECK(settings.slack == 3);
  CHECK(settings.pull_most == 7.5);
  CHECK(settings.pull_fresh == 6);
  CHECK(settings.secure_sum);
}

TEST_CASE("what is wrong in a site's file is named with its line") {
  CHECK(refusal_of("name = \"bank\"\n").starts_with("site.toml"));
  CHECK(refusal_of(std::string(kNames) + "stat = 1\n").starts_with("site.toml:6: stat"));
  CHECK(refusal_of(std::string(kNames) + "[network]\npatience = \"soon\"\n")
            .starts_with("site.toml:7: network.patience"));
  CHECK(refusal_of(std::string(kNames) + "[network]\npace = 1\n")
            .starts_with("site.toml:7: network.pace"));
  CHECK(refusal_of(std::string(kNames) + "[training]\nlr = \"fast\"\n")
            .starts_with("site.toml:7: training.lr"));
  CHECK(refusal_of(std::string(kNames) + "[training]\nprivacy-epsilon = 4\n")
            .starts_with("site.toml:7: training.privacy-epsilon"));
  CHECK(refusal_of(std::string(kNames) + "[training]\nlearning-rate = 4\n")
            .starts_with("site.toml:7: training.learning-rate"));
  CHECK(refusal_of(std::string(kNames) + "[training]\nstate = \"x\"\n")
            .starts_with("site.toml:7: training.state"));
  CHECK(refusal_of("sotto-site = 2\n").starts_with("site.toml:1: sotto-site"));
}

TEST_CASE("a site's file has these of a run's settings under training") {
  study::TrainOptions options;
  std::string taken;
  for (const SettingGroup& group : train_settings(options)) {
    for (const Setting& setting : group.settings) {
      if (study::is_training_setting(setting.name)) {
        taken += std::string(setting.name) + " ";
      }
    }
  }
  const std::string all =
      "task model batch partition gradient-time init algorithm compressor consensus-stepsize rule "
      "step-rule lr momentum quasi-global-momentum nesterov weight-decay beta1 beta2 epsilon "
      "bias-correction trust-coefficient update-scale clip-norm schedule communication-interval "
      "outer-step-rule outer-lr outer-momentum outer-nesterov noise-multiplier privacy-epsilon "
      "privacy-delta privacy-unit rounds eval-every dump-parameters seed ";
  CHECK(taken == all);
  CHECK_FALSE(study::is_training_setting("secure-sum"));  // [network] has it
  CHECK_FALSE(study::is_training_setting("export"));      // `sotto train` does not
}

TEST_CASE("a site's own steps are a count up to the interval, or chosen by speed") {
  const auto options_with = [](const std::string& network) {
    const File file(std::string(kNames) + "[training]\ncommunication-interval = 8\n[network]\n" +
                    network);
    SiteOptions options{.security = {make_key_pair(), nullptr}};
    take_settings(study::read_site_file(file.path()), options);
    return options;
  };
  CHECK_FALSE(options_with("").own_steps);
  CHECK_FALSE(options_with("").adapts_steps);
  CHECK(options_with("").step_weighting == sites::StepWeighting::work);
  CHECK(options_with("own-steps = 3\nstep-weighting = \"equal\"\n").own_steps == 3);
  CHECK(options_with("step-weighting = \"equal\"\n").step_weighting == sites::StepWeighting::equal);
  CHECK(options_with("own-steps = \"auto\"\n").adapts_steps);
  CHECK_THROWS_WITH_AS(options_with("own-steps = 9\n"), doctest::Contains("own_steps"), Error);
  CHECK_THROWS_WITH_AS(options_with("own-steps = \"few\"\n"), doctest::Contains("own_steps"),
                       Error);
  CHECK_THROWS_WITH_AS(options_with("step-weighting = \"speed\"\n"),
                       doctest::Contains("it is work or equal"), Error);
}

}  // namespace sotto::test::site_file_test
