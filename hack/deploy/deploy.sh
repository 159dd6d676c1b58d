#!/usr/bin/env bash
# Implements `make install`, `deploy`, `undeploy`, `uninstall` and `build-installer`. It renders
# config with the given image, namespace and components in a temporary directory, so that no file of
# the repository changes. Commands that change a cluster print its name first.
#
#   deploy.sh install|deploy|undeploy|uninstall|build-installer
#
# The environment variables are CLUSTER (a kubeconfig), IMAGE, NAMESPACE, COMPONENTS, CONFIG (the
# operator's configuration file), INSTALLER, KUBECTL and WITH_POLICIES.
set -euo pipefail
cd "$(dirname "$0")/../.."

: "${NAMESPACE:=proffer-system}" "${KUBECTL:=kubectl}" "${INSTALLER:=dist/install.yaml}"
pods=(--namespace "$NAMESPACE" --selector app.kubernetes.io/name=proffer,app.kubernetes.io/component=operator)

fail() {
  echo "$1" >&2
  exit 1
}

on_cluster() { "$KUBECTL" --kubeconfig "$CLUSTER" "$@"; }

# Prints which cluster is about to change.
name_cluster() {
  [[ -n ${CLUSTER:-} ]] ||
    fail "$1 changes a cluster, and an exported KUBECONFIG is ignored: write make $1 KUBECONFIG=\$HOME/.kube/config"
  [[ -f $CLUSTER ]] || fail "KUBECONFIG=$CLUSTER is not a file: write the path of one kubeconfig"
  command -v "$KUBECTL" >/dev/null || fail "$KUBECTL is not installed: install kubectl, or write KUBECTL=file"
  local server
  server=$(on_cluster config view --minify --output jsonpath='{.clusters[0].cluster.server}') && [[ -n $server ]] ||
    fail "KUBECONFIG=$CLUSTER names no cluster: is it a kubeconfig with a current context?"
  echo "$1: $server, namespace $NAMESPACE"
}

# Sets overlay to a new overlay of config/default with these components.
make_overlay() {
  mkdir -p bin
  overlay=$(mktemp -d bin/overlay.XXXXXX)
  trap 'rm -rf "$overlay"' EXIT
  {
    printf 'namespace: "%s"\nresources: [../../config/default]\n' "$NAMESPACE"
    (($# == 0)) || echo "components:"
    for component in "$@"; do
      [[ -f config/components/$component/kustomization.yaml ]] ||
        fail "there is no component $component: COMPONENTS takes any of $(cd config/components && echo *)"
      echo "- ../../config/components/$component"
    done
  } >"$overlay/kustomization.yaml"
}

# Adds the image to the overlay.
set_image() {
  local name tag=
  [[ ${IMAGE:-} =~ ^[A-Za-z0-9._:/@-]+$ ]] ||
    fail "$1 needs an image that the nodes can pull: write make $1 IMG=registry.example.com/proffer:v0.1.0"
  if [[ $IMAGE == *@* ]]; then
    name=${IMAGE%%@*}
    tag="digest: \"${IMAGE#*@}\""
  elif [[ ${IMAGE##*/} == *:* ]]; then
    name=${IMAGE%:*}
    tag="newTag: \"${IMAGE##*:}\""
  else
    fail "IMG=$IMAGE has no tag: write IMG=$IMAGE:v0.1.0"
  fi
  printf 'images: [{name: controller, newName: "%s", %s}]\n' "$name" "$tag" >>"$overlay/kustomization.yaml"
}

# Adds the ConfigMap of the operator's configuration file, which the component accounting mounts.
set_configuration() {
  if ! needs_database; then
    [[ -z ${CONFIG:-} ]] || fail "CONFIG=$CONFIG has no effect without the component accounting: write COMPONENTS=accounting too"
    return 0
  fi
  [[ -n ${CONFIG:-} ]] ||
    fail "the component accounting needs a configuration file: copy config/components/accounting/config.yaml, set clusterID, and write CONFIG=file"
  [[ -f $CONFIG ]] || fail "CONFIG=$CONFIG is not a file: copy config/components/accounting/config.yaml, and set clusterID"
  grep -Eq "^clusterID: *[\"']?[^\"'#[:space:]]" "$CONFIG" || fail "CONFIG=$CONFIG has no clusterID: write the ID of this cluster in Liqo"
  cp "$CONFIG" "$overlay/config.yaml"
  cat >>"$overlay/kustomization.yaml" <<EOF
configMapGenerator:
- name: proffer-configuration
  namespace: "$NAMESPACE"
  files: [config.yaml]
  options:
    labels: {app.kubernetes.io/name: proffer, app.kubernetes.io/component: configuration, app.kubernetes.io/part-of: proffer, app.kubernetes.io/managed-by: kustomize}
EOF
}

# Whether the component accounting is one of COMPONENTS.
needs_database() { [[ " ${COMPONENTS:-} " == *" accounting "* ]]; }

# Deletes the objects of these kinds, a regular expression, from the overlay.
leave_out() {
  local patch='{$patch: delete, apiVersion: v1, kind: all, metadata: {name: all}}'
  printf '%s\n' "patches:" "- {target: {kind: '$1'}, patch: '$patch'}" >>"$overlay/kustomization.yaml"
}

count() { on_cluster get "$@" --output name | wc -l | tr -d ' '; }

has() { [[ -n $(on_cluster get customresourcedefinition "$1" --ignore-not-found --output name) ]]; }

# Prints the namespaces that have an operator.
operators() {
  on_cluster get deployments --all-namespaces --selector app.kubernetes.io/name=proffer,app.kubernetes.io/component=operator \
    --output jsonpath='{range .items[*]}{.metadata.namespace}{"\n"}{end}'
}

has_admission_policies() {
  local kinds
  kinds=$(on_cluster api-resources --api-group=admissionregistration.k8s.io --output name)
  [[ $kinds == *validatingadmissionpolicies.* ]]
}

install() {
  name_cluster install
  on_cluster apply -k config/crd
}

deploy() {
  # shellcheck disable=SC2086 # One component a word.
  make_overlay ${COMPONENTS:-}
  set_image deploy
  set_configuration
  name_cluster deploy
  local others
  others=$(operators)
  others=$(grep -vx "$NAMESPACE" <<<"$others") || true # grep finds nothing where there is no other
  [[ -z $others ]] || fail "Proffer is installed in namespace $others, and a cluster has one: write make undeploy NAMESPACE=$others KUBECONFIG=$CLUSTER first"
  if needs_database && [[ $(on_cluster --namespace "$NAMESPACE" get secret proffer-database --ignore-not-found \
    --output go-template='{{if .data.dsn}}there{{end}}') != there ]]; then
    fail "namespace $NAMESPACE has no Secret proffer-database with the key dsn, without which no new replica starts: create it first,
see docs/how-to/record-in-a-database.md"
  fi
  if ! has_admission_policies && [[ $("$KUBECTL" kustomize "$overlay") == *"kind: ValidatingAdmissionPolicy"* ]]; then
    fail "this Kubernetes has no ValidatingAdmissionPolicies, which begin with 1.30: write COMPONENTS=$(cd config/components && echo kubernetes-1.2*),
without served-classes, slice-pod-guard and provider-guard, which need them"
  fi
  on_cluster apply -k "$overlay"
  echo "deploy: applied. Until a ResourcePolicy is there, nothing is offered. To see the replicas start:"
  echo "  kubectl -n $NAMESPACE rollout status deployment/proffer"
}

build_installer() {
  # shellcheck disable=SC2086
  make_overlay ${COMPONENTS:-}
  set_image build-installer
  set_configuration
  mkdir -p "$(dirname "$INSTALLER")"
  "$KUBECTL" kustomize "$overlay" >"$overlay/install.yaml"
  mv "$overlay/install.yaml" "$INSTALLER"
  echo "build-installer: kubectl apply -f $INSTALLER installs $IMAGE in namespace $NAMESPACE"
}

# The operator is deleted first: while it runs, it would withdraw the offers of deleted policies.
# The CRDs and the namespace stay, and with them all policies, Grants and records.
undeploy() {
  name_cluster undeploy
  local asks admission=
  asks=$(on_cluster get deployments --all-namespaces --output \
    jsonpath='{range .items[*]}{.metadata.namespace}/{.metadata.name} {.spec.template.spec.containers[*].args}{"\n"}{end}')
  asks=$(grep -F "proffer.$NAMESPACE.svc" <<<"$asks" | cut -d ' ' -f 1) || true
  [[ -z $asks ]] || fail "Deployment $asks asks Proffer for its offers, and would not start again without: give it another address first,
see docs/how-to/uninstall.md"

  on_cluster --namespace "$NAMESPACE" delete deployment proffer --ignore-not-found
  on_cluster wait --for=delete pod "${pods[@]}" --timeout=120s
  if has_admission_policies; then
    # Before the lists that they read: without these the policies would refuse every slice and pod.
    on_cluster delete validatingadmissionpolicybinding,validatingadmissionpolicy --selector app.kubernetes.io/part-of=proffer
  else
    admission='|ValidatingAdmissionPolicy(Binding)?'
  fi
  local components=(networkpolicy served-classes slice-pod-guard provider-guard dashboard catalog catalog-http orchestrator federation)
  ! has servicemonitors.monitoring.coreos.com || components+=(servicemonitor)
  ! has prometheusrules.monitoring.coreos.com || components+=(alerts)
  make_overlay "${components[@]}"
  leave_out "CustomResourceDefinition|Namespace$admission"
  on_cluster delete -k "$overlay" --ignore-not-found
  # The names of these end in a hash of what they contain.
  on_cluster --namespace "$NAMESPACE" delete configmap --selector app.kubernetes.io/part-of=proffer,app.kubernetes.io/component=configuration
  # The CRD of the component catalog: Offers are written again.
  on_cluster delete customresourcedefinition offers.proffer.dev --ignore-not-found
  echo "undeploy: kept the CRDs, $(remaining), and namespace $NAMESPACE. Consumers keep what they were granted."
  local sending
  sending=$(offloadings)
  ((sending == 0)) || echo "undeploy: kept $sending NamespaceOffloadings too, so Liqo still sends pods on. docs/how-to/run-a-broker.md says how to remove them."
  echo "To install again: make deploy, or helm install with --take-ownership --force-conflicts."
  echo "To remove these too:"
  echo "  make uninstall WITH_POLICIES=1 KUBECONFIG=$CLUSTER"
  echo "  kubectl delete namespace $NAMESPACE"
}

# Prints the number of NamespaceOffloadings that the operator has written.
offloadings() {
  if has namespaceoffloadings.offloading.liqo.io; then
    count namespaceoffloadings.offloading.liqo.io --all-namespaces --selector app.kubernetes.io/managed-by=proffer
  else
    echo 0
  fi
}

# Prints the number of objects that would be deleted with the CRDs.
remaining() {
  local policies=0 grants=0
  ! has resourcepolicies.proffer.dev || policies=$(count resourcepolicies.proffer.dev)
  ! has grants.proffer.dev || grants=$(count grants.proffer.dev --all-namespaces)
  if has orchestrations.proffer.dev; then # of the component orchestrator
    echo "$policies ResourcePolicies, $grants Grants and $(count orchestrations.proffer.dev) Orchestrations"
  else
    echo "$policies ResourcePolicies and $grants Grants"
  fi
}

uninstall() {
  name_cluster uninstall
  local running
  running=$(operators)
  [[ -z $running ]] || fail "Proffer still runs in namespace $running, and would withdraw what deleted policies offered: \
write make undeploy NAMESPACE=$running KUBECONFIG=$CLUSTER first"
  local sending objects
  sending=$(offloadings)
  ((sending == 0)) || fail "$sending NamespaceOffloadings of the operator would stay, and Liqo would go on sending pods: write make deploy again, delete the
Orchestrations, and wait, see docs/how-to/run-a-broker.md"
  objects=$(remaining)
  if [[ $objects == *[1-9]* && ${WITH_POLICIES:-} != 1 ]]; then
    fail "$objects would be deleted with the CRDs: write WITH_POLICIES=1 if you mean it"
  fi
  on_cluster delete -k config/crd --ignore-not-found
  on_cluster delete customresourcedefinition orchestrations.proffer.dev providerchoices.proffer.dev --ignore-not-found
}

case ${1:-} in
install | deploy | undeploy | uninstall) "$1" ;;
build-installer) build_installer ;;
*) fail "deploy.sh does install, deploy, undeploy, uninstall and build-installer" ;;
esac
