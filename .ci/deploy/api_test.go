package deploy

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	aggregator "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	aggregatorvalidation "k8s.io/kube-aggregator/pkg/apis/apiregistration/validation"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	scheme "k8s.io/kubernetes/pkg/api/legacyscheme"
	podapi "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install" // into the scheme, as those below
	admissionvalidation "k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/kubernetes/pkg/apis/rbac"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	rbacvalidation "k8s.io/kubernetes/pkg/apis/rbac/validation"
	"k8s.io/kubernetes/pkg/apis/storage"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	storagevalidation "k8s.io/kubernetes/pkg/apis/storage/validation"
	"k8s.io/kubernetes/pkg/capabilities"
)

// A cluster may forbid privileged containers; this one is as most are.
func init() {
	capabilities.Setup(true, 0)
	aggregator.Install(scheme.Scheme)
}

// strict refuses unknown and repeated fields.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// accept does what the API server does with an object before it stores it: decode
// it, fill in defaults, and validate it.
func accept(object *unstructured.Unstructured) (runtime.Object, error) {
	name := object.GetKind() + " " + object.GetName()
	content, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	versioned, kind, err := strict.Decode(content, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	scheme.Scheme.Default(versioned)
	internal, err := scheme.Scheme.ConvertToVersion(versioned, schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	// The server knows the namespace from the request.
	if accessor, err := meta.Accessor(internal); err == nil && accessor.GetNamespace() == "" && namespaced(internal) {
		accessor.SetNamespace("default")
	}
	problems := validate(internal)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s: %w", name, problems.ToAggregate())
	}
	return versioned, nil
}

func namespaced(object runtime.Object) bool {
	switch object.(type) {
	case *core.Namespace, *storage.CSIDriver, *storage.StorageClass, *apiextensions.CustomResourceDefinition,
		*rbac.ClusterRole, *rbac.ClusterRoleBinding, *apiregistration.APIService,
		*admissionregistration.ValidatingAdmissionPolicy, *admissionregistration.ValidatingAdmissionPolicyBinding,
		*admissionregistration.MutatingAdmissionPolicy, *admissionregistration.MutatingAdmissionPolicyBinding:
		return false
	default:
		return true
	}
}

func validate(object runtime.Object) field.ErrorList {
	switch o := object.(type) {
	case *core.Namespace:
		return corevalidation.ValidateNamespace(o)
	case *core.ServiceAccount:
		return corevalidation.ValidateServiceAccount(o)
	case *core.ConfigMap:
		return corevalidation.ValidateConfigMap(o)
	case *core.Secret:
		return corevalidation.ValidateSecret(o)
	case *core.Service:
		if o.Spec.ClusterIP != "" { // as the server does before it validates
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
		return corevalidation.ValidateServiceCreate(o)
	case *core.ResourceQuota:
		return corevalidation.ValidateResourceQuota(o)
	case *core.PersistentVolumeClaim:
		return corevalidation.ValidatePersistentVolumeClaim(o, corevalidation.ValidationOptionsForPersistentVolumeClaimCreate())
	case *core.Pod:
		return corevalidation.ValidatePodCreate(o, podapi.GetValidationOptionsFromPodSpecAndMeta(&o.Spec, nil, &o.ObjectMeta, nil))
	case *apps.DaemonSet:
		return appsvalidation.ValidateDaemonSet(o, podapi.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
	case *apps.StatefulSet:
		return appsvalidation.ValidateStatefulSet(o, appsvalidation.StatefulSetValidationOptions{},
			podapi.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
	case *apps.Deployment:
		return appsvalidation.ValidateDeployment(o, podapi.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
	case *batch.Job:
		selectOwnPods(o)
		return batchvalidation.ValidateJobCreate(o, batchvalidation.JobValidationOptions{
			RequirePrefixedLabels: true,
			PodValidationOptions:  podapi.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil),
		})
	case *networking.NetworkPolicy:
		return networkingvalidation.ValidateNetworkPolicy(o, networkingvalidation.NetworkPolicyValidationOptions{})
	case *rbac.Role:
		return rbacvalidation.ValidateRole(o)
	case *rbac.RoleBinding:
		return rbacvalidation.ValidateRoleBinding(o)
	case *rbac.ClusterRole:
		return rbacvalidation.ValidateClusterRole(o, rbacvalidation.ClusterRoleValidationOptions{})
	case *rbac.ClusterRoleBinding:
		return rbacvalidation.ValidateClusterRoleBinding(o)
	case *policy.PodDisruptionBudget:
		return policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{})
	case *admissionregistration.ValidatingAdmissionPolicy:
		return admissionvalidation.ValidateValidatingAdmissionPolicy(o)
	case *admissionregistration.ValidatingAdmissionPolicyBinding:
		return admissionvalidation.ValidateValidatingAdmissionPolicyBinding(o)
	case *admissionregistration.MutatingAdmissionPolicy:
		return admissionvalidation.ValidateMutatingAdmissionPolicy(o)
	case *admissionregistration.MutatingAdmissionPolicyBinding:
		return admissionvalidation.ValidateMutatingAdmissionPolicyBinding(o)
	case *apiregistration.APIService:
		return aggregatorvalidation.ValidateAPIService(context.Background(), o)
	case *apiextensions.CustomResourceDefinition:
		return apiextensionsvalidation.ValidateCustomResourceDefinition(context.Background(), o)
	case *storage.StorageClass:
		return storagevalidation.ValidateStorageClass(o)
	case *storage.CSIDriver:
		return storagevalidation.ValidateCSIDriver(o)
	default:
		return field.ErrorList{field.NotSupported(field.NewPath("kind"), fmt.Sprintf("%T", o), []string{"those that validate knows"})}
	}
}

// selectOwnPods does for a job what the server does for one without a selector.
func selectOwnPods(job *batch.Job) {
	job.UID = "00000000-0000-0000-0000-000000000001"
	labels := map[string]string{
		batch.ControllerUidLabel:       string(job.UID),
		batch.LegacyControllerUidLabel: string(job.UID),
		batch.JobNameLabel:             job.Name,
		batch.LegacyJobNameLabel:       job.Name,
	}
	if job.Spec.Template.Labels == nil {
		job.Spec.Template.Labels = map[string]string{}
	}
	maps.Copy(job.Spec.Template.Labels, labels)
	job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batch.ControllerUidLabel: string(job.UID)}}
}
