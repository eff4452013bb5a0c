#include "train_options.h"

#include <limits>

namespace sotto::cli {
namespace {

/// Counts stay below this; 10^15 rounds outlast any run.
constexpr std::uint64_t kMostRounds = 1'000'000'000'000'000;

void add_task_options(CLI::App& command, TrainOptions& o) {
  const char* group = "What is trained";
  command.add_option("--task", o.task, "digits, or data of your own; see `sotto list`")
      ->type_name("SPEC")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--model", o.model, "softmax, mlp:H1,H2,…, cnn; by default what fits the task")
      ->type_name("SPEC")
      ->group(group);
  command.add_option("--batch", o.batch, "Examples a round and node")
      ->type_name("N")
      ->check(whole_number(kMostRounds))
      ->capture_default_str()
      ->group(group);
  command.add_option("--partition", o.partition, "iid, dirichlet:ALPHA or label")
      ->type_name("SPEC")
      ->capture_default_str()
      ->group(group);
  command.add_option("--init", o.init, "Start from the first row of this file of parameters")
      ->type_name("FILE.csv")
      ->group(group);
}

void add_network_options(CLI::App& command, TrainOptions& o) {
  const char* group = "Who takes part";
  command
      .add_option("--nodes", o.nodes,
                  "Number of nodes; 8, or what the data or the graph says by itself")
      ->type_name("N")
      ->check(whole_number(std::numeric_limits<int>::max()))
      ->group(group);
  command.add_option("--topology", o.topology, "Who talks to whom; see `sotto list`")
      ->type_name("SPEC")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--weighting", o.weighting,
                  "metropolis, uniform or shares; by default what fits the graph")
      ->type_name("NAME")
      ->group(group);
  command.add_flag("--lazy", o.lazy, "Mix with (I + W) / 2")->group(group);
  command
      .add_option("--transport", o.transport,
                  "inproc (threads; the default), gloo or zmq (processes)")
      ->type_name("NAME")
      ->group(group);
  command
      .add_option("--timeout", o.timeout_s,
                  "Seconds of silence after which a peer counts as failed")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--rendezvous", o.rendezvous,
                  "Where the nodes of a launched job meet: tcp://HOST:PORT, file:DIR, "
                  "redis://HOST:PORT/PREFIX; by default from MASTER_ADDR and MASTER_PORT")
      ->type_name("URL")
      ->group(group);
  command.add_option("--bind", o.bind, "Address to listen on")
      ->type_name("ADDRESS")
      ->capture_default_str()
      ->group(group);
  command.add_flag("--insecure", o.insecure, "Allow listening beyond this host without encryption")
      ->group(group);
  command
      .add_flag("--local", o.local,
                "Run all nodes here, whatever a launcher's variables (RANK, …) say")
      ->group(group);
}

void add_algorithm_options(CLI::App& command, TrainOptions& o) {
  const char* group = "Algorithm";
  command.add_option("--algorithm", o.algorithm, "See `sotto list`")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--compressor", o.compressor, "See `sotto list`; by default the algorithm's own")
      ->type_name("SPEC")
      ->group(group);
  command
      .add_option("--consensus-stepsize", o.consensus_stepsize,
                  "How far to move to the neighbours (deepsqueeze, choco); by default derived from "
                  "the compressor")
      ->type_name("ETA")
      ->group(group);
  command
      .add_option("--extrapolation-clock", o.extrapolation_clock,
                  "ecd: where its clock t stops; a small T suits a fine grid")
      ->type_name("T")
      ->check(whole_number(kMostRounds))
      ->group(group);
  command
      .add_option("--freeze-step", o.freeze_step,
                  "Rounds of plain Adam before the variance is frozen (apmsqueeze, onebit-adam); "
                  "auto: until it is stable (onebit-adam)")
      ->type_name("R|auto")
      ->capture_default_str()
      ->group(group);
  command
      .add_flag("--allow-contract-violation", o.allow_contract_violation,
                "Run a compressor or graph for which the algorithm's theory does not hold")
      ->group(group);
  command.add_option("--overlap", o.overlap, "on: talk to the neighbours during the gradient")
      ->type_name("on|off")
      ->capture_default_str()
      ->group(group);
}

void add_step_options(CLI::App& command, TrainOptions& o) {
  const char* group = "Local step";
  command
      .add_option("--step-rule", o.step_rule,
                  "sgd, adam, adamw, lars or lamb; by default what the algorithm is built on, else "
                  "sgd")
      ->type_name("NAME")
      ->group(group);
  command
      .add_option("--lr", o.lr,
                  "Learning rate; by default 0.1 for sgd, 1 for lars, 0.001 for adam and lamb")
      ->type_name("GAMMA")
      ->group(group);
  command.add_option("--momentum", o.momentum, "sgd, lars: momentum")
      ->type_name("MU")
      ->capture_default_str()
      ->group(group);
  command.add_flag("--nesterov", o.nesterov, "sgd: Nesterov's form of the momentum")->group(group);
  command.add_option("--weight-decay", o.weight_decay, "Weight decay")
      ->type_name("LAMBDA")
      ->capture_default_str()
      ->group(group);
  command.add_option("--beta1", o.beta1, "adam, lamb: decay of the mean")
      ->capture_default_str()
      ->group(group);
  command.add_option("--beta2", o.beta2, "adam, lamb: decay of the variance")
      ->capture_default_str()
      ->group(group);
  command.add_option("--epsilon", o.epsilon, "adam, lamb: added to the root of the variance")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--trust-coefficient", o.trust_coefficient,
                  "lars: a tensor's step relative to its norm, before the learning rate")
      ->type_name("ETA")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--clip-norm", o.clip_norm,
                  "Scale gradients down to this Euclidean norm, over all tensors")
      ->type_name("MAX")
      ->group(group);
  command
      .add_option("--schedule", o.schedule,
                  "constant, step:EVERY[:FACTOR], cosine[:FLOOR] or invsqrt:EVERY, each with "
                  ",warmup=ROUNDS if wanted")
      ->type_name("SPEC")
      ->capture_default_str()
      ->group(group);
}

void add_length_options(CLI::App& command, TrainOptions& o) {
  const char* group = "Length and results";
  auto* epochs = command
                     .add_option("--epochs", o.epochs,
                                 "Passes over the data; by default 5, and 100 rounds at least")
                     ->type_name("E")
                     ->group(group);
  command.add_option("--rounds", o.rounds, "Rounds, instead of epochs")
      ->type_name("R")
      ->check(whole_number(kMostRounds))
      ->excludes(epochs)
      ->group(group);
  command
      .add_option(
          "--eval-every", o.eval_every,
          "Rounds between evaluations; by default an epoch, or more so that there are 100 at "
          "most; 0: only at the end")
      ->type_name("R")
      ->check(whole_number(kMostRounds))
      ->group(group);
  command
      .add_option("--dump-parameters", o.dump_parameters,
                  "Write the final models, a row of numbers for each node")
      ->type_name("FILE.csv")
      ->group(group);
  command.add_option("--checkpoint", o.checkpoint, "Save the state of all nodes in this folder")
      ->type_name("DIR")
      ->group(group);
  command
      .add_option("--checkpoint-every", o.checkpoint_every,
                  "Rounds between checkpoints; by default as --eval-every")
      ->type_name("R")
      ->check(whole_number(kMostRounds))
      ->group(group);
  command.add_flag("--resume", o.resume, "Go on from the newest checkpoint that all nodes have")
      ->group(group);
}

}  // namespace

void add_train_options(CLI::App& command, TrainOptions& options) {
  add_task_options(command, options);
  add_network_options(command, options);
  add_algorithm_options(command, options);
  add_step_options(command, options);
  add_length_options(command, options);
  add_common_options(command, options.common);
}

}  // namespace sotto::cli
